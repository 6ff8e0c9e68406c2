"""Train many runs side by side and collect their scores: the rows of docs/results.md.

    python bench/table.py --data DATA --encoders ENCODERS --work RUNS --out table.json --jobs 6 bench/rows/engine.yaml [NAME …]

A row file lists rows such as ``{name: genia-spanner, corpus: genia, recipe: spanner, encoder: minilm, seeds: [1, 2, 3],
options: [--epochs, "8"]}``. ``corpus`` is a folder in DATA, ``encoder`` a folder in ENCODERS or a name of its own. Small models
leave a GPU idle, so ``--jobs`` of them run at once. The result has one record per run, with the command that made it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml


def command(row: dict[str, Any], seed: int, arguments: argparse.Namespace) -> tuple[list[str], Path]:
    out = arguments.work / f"{row['name']}-{seed}"
    encoder = arguments.encoders / row["encoder"]
    words = [
        sys.executable, "-m", "spanwise", "train", str(arguments.data / row["corpus"]), "--recipe", row["recipe"],
        "--encoder", str(encoder) if encoder.is_dir() else row["encoder"], "--out", str(out), "--seed", str(seed),
        *map(str, row.get("options", [])),
    ]  # fmt: skip
    return words, out


def shown(words: list[str], row: dict[str, Any]) -> str:
    """The command as a reader would type it: names instead of this machine's paths."""
    text = " ".join(["spanwise", *words[3:]])
    for old, new in ((words[4], row["corpus"]), (words[8], row["encoder"]), (words[10], f"runs/{Path(words[10]).name}")):
        text = text.replace(old, new)
    return text


def run(row: dict[str, Any], seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    words, out = command(row, seed, arguments)
    record = {"name": row["name"], "corpus": row["corpus"], "recipe": row["recipe"], "encoder": row["encoder"], "seed": seed}
    began = time.time()
    environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads), "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    record |= {"command": shown(words, row), "seconds": round(time.time() - began, 1), "code": done.returncode}
    if done.returncode == 0:
        report = json.loads((out / "run.json").read_text())
        metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        record["scores"] = {split: report["scores"][split]["micro"] for split in report["scores"]}
        record |= {key: report[key] for key in ("best_epoch", "device", "precision", "versions")}
        record["epoch_seconds"] = [row["seconds"] for row in metrics]
        print(
            f"{record['name']} seed {seed}: {json.dumps({k: round(v['f1'], 4) for k, v in record['scores'].items()})}",
            flush=True,
        )
    else:
        record["error"] = (done.stdout + done.stderr)[-2000:]
        print(f"{record['name']} seed {seed} failed: {record['error'][-500:]}", flush=True)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("names", nargs="*", help="only these rows")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoders", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    rows = [row for row in yaml.safe_load(arguments.rows.read_text()) if not arguments.names or row["name"] in arguments.names]
    arguments.work.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for future in [pool.submit(run, row, seed, arguments) for row in rows for seed in row.get("seeds", [1])]:
            records.append(future.result())
            arguments.out.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
