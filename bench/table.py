"""Train many runs in parallel and collect their scores: the rows of docs/results.md and docs/results/.

    python bench/table.py --data DATA --encoders ENCODERS --work RUNS --out table.json --jobs 6 bench/rows/engine.yaml [NAME …]

A row file lists rows such as ``{name: genia-spanner, corpus: genia, recipe: spanner, encoder: minilm,
seeds: [1, 2, 3], options: [--epochs, "8"], keep: [dev, test]}``. ``corpus`` is a folder in DATA,
``encoder`` a folder in ENCODERS or another name. Small models leave a GPU idle, so ``--jobs`` of them run
in parallel; they compute at the same time only with NVIDIA's multi-process service, which
``nvidia-cuda-mps-control -d`` starts. The result has one record per run with its command and its
predictions of the splits in ``keep``. A second call with the same RUNS resumes interrupted runs and only
collects finished ones.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stderr, redirect_stdout
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
    """Return the command with names instead of this machine's paths."""
    text = " ".join(["spanwise", *words[3:]])
    for old, new in ((words[4], row["corpus"]), (words[8], row["encoder"]), (words[10], f"runs/{Path(words[10]).name}")):
        text = text.replace(old, new)
    return text


def run(row: dict[str, Any], seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    words, out = command(row, seed, arguments)
    record = {"name": row["name"], "corpus": row["corpus"], "recipe": row["recipe"], "encoder": row["encoder"], "seed": seed}
    start_time = time.time()
    if (out / "run.json").is_file():
        code, output = 0, ""
    else:
        code, output = spanwise([*words[3:], *(["--resume"] if out.is_dir() else [])], arguments.threads)
    record |= {"command": shown(words, row), "seconds": round(time.time() - start_time, 1), "code": code}
    if code == 0:
        report = json.loads((out / "run.json").read_text())
        metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        record["scores"] = {split: figures(scores) for split, scores in report["scores"].items()}
        record |= {key: report[key] for key in ("best_epoch", "device", "precision", "versions")}
        record["epoch_seconds"] = [epoch["seconds"] for epoch in metrics]
        record["dev"] = [epoch["dev"] for epoch in metrics]
        record["predicted"] = {split: predicted(out, arguments.data / row["corpus"], split) for split in row.get("keep", [])}
        summary = {split: shorten(scores) for split, scores in record["scores"].items()}
        print(
            f"{record['name']} seed {seed}: {json.dumps(summary)}",
            flush=True,
        )
    else:
        record["error"] = output[-2000:]
        print(f"{record['name']} seed {seed} failed: {record['error'][-500:]}", flush=True)
    return record


def figures(scores: dict[str, Any]) -> dict[str, Any]:
    """Return the scores of all entities, of each type, and of relations if there are any."""
    summary: dict[str, Any] = {**scores["micro"], "types": {type: one["f1"] for type, one in scores["types"].items()}}
    if relations := scores.get("relations"):
        summary["relations"] = {way: relations[way]["micro"]["f1"] for way in ("strict", "boundaries")}
    return summary


def shorten(summary: dict[str, Any]) -> list[float]:
    return [round(value, 4) for value in (summary["f1"], *summary.get("relations", {}).values())]


def spanwise(words: list[str], threads: int) -> tuple[int, str]:
    """Run a spanwise command in this process; return its exit code and output."""
    import torch

    from spanwise.cli import main as command_line

    torch.set_num_threads(threads)
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        try:
            code = command_line(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except Exception:
            traceback.print_exc()
            code = 1
    return code or 0, output.getvalue()


def predicted(out: Path, corpus: Path, split: str) -> list[list[Any]]:
    """Return type, start and end of the entities that a run predicts in each sentence of a split."""
    file = out / f"{split}.jsonl"
    if not file.is_file():
        spanwise(["predict", str(out), str(corpus / file.name), "--output", str(file)], 1)
    sentences = [json.loads(line) for line in file.read_text().splitlines()]
    return [[[entity["type"], *entity["spans"][0]] for entity in sentence["entities"]] for sentence in sentences]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("names", nargs="*", help="names of rows; all by default")
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
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # A new process per run, forked from one that has imported everything, which saves seconds.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["transformers", "spanwise.cli", "spanwise.training.run", "spanwise.encoders.transformer"])
    with ProcessPoolExecutor(arguments.jobs, mp_context=context, max_tasks_per_child=1) as pool:
        for future in as_completed(pool.submit(run, row, seed, arguments) for row in rows for seed in row.get("seeds", [1])):
            records.append(future.result())
            arguments.out.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
