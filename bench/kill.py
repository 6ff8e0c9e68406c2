"""Kill a short training at random moments, resume it, and compare it with an uninterrupted one.

    python bench/kill.py [--kills 20] [--encoder static] [--threads 1] [--seed 0] [--limit 1200] [-- OPTIONS OF spanwise train]

Weights, metrics (without times) and scores must be equal, bit for bit. The moments of SIGKILL are spread
over the whole training, from its first file to its last. Some are during the start of the process, and
many during the writing of a checkpoint, which happens every second step. No further kill starts after
``--limit`` seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import spanwise

PATIENCE = 300  # maximum seconds of one process


def write_data(folder: Path, size: int) -> None:
    """Return the first part of the bundled corpus."""
    folder.mkdir()
    for split, sentences in spanwise.bundled_corpus().splits.items():
        spanwise.write(islice(sentences, size), folder / f"{split}.jsonl")


def start(arguments: argparse.Namespace, data: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    words = [
        sys.executable, "-m", "spanwise", "train", str(data), "--out", str(out), "--recipe", "spanner", "--encoder",
        arguments.encoder, "--epochs", "3", "--batch-size", "8", "--device", "cpu", "--set", "training.checkpoint_steps=2",
        *arguments.options, *more,
    ]  # fmt: skip
    with (out.parent / "log.txt").open("ab") as log:
        environment = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads)}
        return subprocess.Popen(words, stdout=log, stderr=log, env=environment)


def end(process: subprocess.Popen[bytes], out: Path) -> None:
    """Wait until a process has finished."""
    try:
        code = process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        sys.exit(f"a training did not end in {PATIENCE} s: {out.parent / 'log.txt'}")
    if code:
        sys.exit(f"a training failed: {out.parent / 'log.txt'}\n{(out.parent / 'log.txt').read_text()[-2000:]}")


def begin(process: subprocess.Popen[bytes], out: Path) -> None:
    """Wait until a process has written its first file."""
    while not (out / "config.yaml").exists() and process.poll() is None:
        time.sleep(0.005)


def result(out: Path) -> tuple[bytes, list[dict[str, Any]], Any]:
    """Return weights, metrics without times, and scores, which must not depend on interruptions."""
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    for row in metrics:
        del row["seconds"], row["dev_seconds"]
    return (out / "model.safetensors").read_bytes(), metrics, json.loads((out / "run.json").read_text())["scores"]


def place(out: Path) -> str:
    """Describe the progress of a killed training by its checkpoints."""
    checkpoints = sorted((out / "checkpoints").glob("*"), key=lambda path: path.stat().st_mtime)
    return ", ".join(path.name for path in checkpoints) or ("no checkpoint yet" if out.is_dir() else "no files yet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("options", nargs="*")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--encoder", default="static")
    parser.add_argument("--sentences", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1200)
    arguments = parser.parse_args()
    choose, start_time = random.Random(arguments.seed), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="spanwise-kill-") as folder:
        work = Path(folder)
        write_data(work / "data", arguments.sentences)
        process = start(arguments, work / "data", work / "whole")
        begin(process, work / "whole")
        first_file = time.monotonic()
        end(process, work / "whole")
        seconds = time.monotonic() - first_file
        expected = result(work / "whole")
        print(f"uninterrupted: {seconds:.1f} s from its first file to its end", flush=True)
        same = done = killed = 0
        while done < arguments.kills and time.monotonic() - start_time < arguments.limit:
            out = work / f"killed-{done}"
            process = start(arguments, work / "data", out)
            if done % 10 != 9:  # otherwise during the start of the process
                begin(process, out)
            moment = choose.uniform(0, seconds)
            time.sleep(moment)
            process.kill()
            killed += process.wait() == -signal.SIGKILL
            where = place(out) if not (out / "run.json").exists() else "finished already"
            if not (out / "run.json").exists():
                end(start(arguments, work / "data", out, "--resume"), out)
            is_same = result(out) == expected
            same, done = same + is_same, done + 1
            print(f"kill {done} after {moment:.2f} s ({where}): {'same' if is_same else 'DIFFERENT'}", flush=True)
    took = time.monotonic() - start_time
    print(f"{same} of {done} equal to the uninterrupted training ({killed} killed before their end); {took:.0f} s")
    sys.exit(same < done or done < arguments.kills)


if __name__ == "__main__":
    main()
