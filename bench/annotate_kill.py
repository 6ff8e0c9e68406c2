"""Kill workers and the driver of ``spanwise annotate``, and check that every row is annotated exactly once.

    python bench/annotate_kill.py RUN --data CONLL04 [--rows 1000000] [--ray] [--kills 5] [--workers 2] [--json FILE]

The sentences of a corpus, repeated, are annotated by one process without interruption, and again by two
workers. During the second run, a worker gets SIGKILL five times, spread over the run; then the driver gets
SIGKILL and the command is started again. Afterwards, the output must have every row once, equal to that
of the first run byte for byte. Resident memory of all processes is sampled: the largest values in the
first and the last third of the run must be about the same.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import psutil

from spanwise.annotation.run import annotate
from spanwise.corpora.splits import open_splits


def write_input(data: Path, path: Path, rows: int) -> None:
    texts = [sentence.text for split in open_splits(data).values() for sentence in split]
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(islice(cycle(texts), rows)):
            file.write(json.dumps({"id": number, "text": text}) + "\n")


def workers_of(driver: int, is_ray: bool) -> list[psutil.Process]:
    """The worker processes below a driver: actors of Ray, or those with the most memory."""
    children = psutil.Process(driver).children(recursive=True)
    if is_ray:
        return [child for child in children if "ShardActor" in " ".join(child.cmdline())]
    return [child for child in children if "forkserver" in " ".join(child.cmdline()) and child.ppid() != driver]


def resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


class Run:
    """A command in a process, watched through the markers of its finished shards."""

    def __init__(self, command: list[str], output: Path) -> None:
        self.output, self.process = output, subprocess.Popen(command)
        self.memory: list[tuple[int, int]] = []  # finished shards, and bytes of the largest worker

    @property
    def finished(self) -> int:
        return len(list((self.output / "_done").rglob("*.json")))

    def wait_for(self, shards: int, is_ray: bool) -> None:
        """Wait until this many shards are finished, or the command has ended."""
        while self.finished < shards and self.process.poll() is None:
            try:
                workers = workers_of(self.process.pid, is_ray)
            except psutil.Error:
                workers = []
            self.memory.append((self.finished, max(map(resident, workers), default=0)))
            time.sleep(0.5)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.jsonl"))}


def check(expected: Path, actual: Path, rows: int) -> dict[str, Any]:
    lines = [line for content in contents(actual).values() for line in content.splitlines()]
    ids = [json.loads(line)["id"] for line in lines]
    return {
        "rows": len(ids), "every_row_once": sorted(ids) == list(range(rows)),
        "equal_to_one_process": contents(expected) == contents(actual),
        "leftovers": [path.name for path in actual.iterdir() if path.name.startswith(".")],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--shard-size", type=int, default=1 << 20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--alone-workers", type=int, default=1, help="workers of the run without interruption")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_input(arguments.data, folder / "rows.jsonl", arguments.rows)
        options = {"device": "cpu", "shard_size": arguments.shard_size}
        alone = {"workers": arguments.alone_workers, "threads": arguments.alone_workers}
        shards = annotate(arguments.run, folder / "rows.jsonl", folder / "alone", **alone, **options).shards
        output = folder / "output"
        command = [
            sys.executable, "-m", "spanwise", "annotate", str(arguments.run), str(folder / "rows.jsonl"), str(output),
            "--device", "cpu", "--workers", str(arguments.workers), "--threads", str(arguments.workers),
            "--shard-size", str(arguments.shard_size), *(["--ray", "local"] if arguments.ray else []),
        ]  # fmt: skip
        start = time.perf_counter()
        run = Run(command, output)
        steps = arguments.kills + 3
        for kill in range(1, arguments.kills + 1):
            run.wait_for(shards * kill // steps, arguments.ray)
            while not (workers := workers_of(run.process.pid, arguments.ray)):
                time.sleep(0.5)
            workers[kill % len(workers)].kill()
            print(f"killed worker {kill} after {run.finished} of {shards} shards", flush=True)
        run.wait_for(shards * (arguments.kills + 1) // steps, arguments.ray)
        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait()
        before = run.finished
        print(f"killed the driver after {before} of {shards} shards", flush=True)
        time.sleep(3)  # its processes end
        again = Run(command, output)
        again.wait_for(shards + 1, arguments.ray)
        memory = [(done, size) for done, size in (*run.memory, *again.memory) if size]
        thirds = [[size for done, size in memory if third == min(3 * done // shards, 2)] for third in range(3)]
        result = {
            "shards": shards, "kills": arguments.kills, "finished_before_restart": before, "exit_code": again.process.wait(),
            "seconds": time.perf_counter() - start,
            "largest_worker_megabytes_by_third": [max(sizes, default=0) >> 20 for sizes in thirds],
            **check(folder / "alone", output, arguments.rows),
        }  # fmt: skip
    print(json.dumps(result, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if not (result["every_row_once"] and result["equal_to_one_process"] and result["exit_code"] == 0):
        sys.exit(1)


if __name__ == "__main__":
    main()
