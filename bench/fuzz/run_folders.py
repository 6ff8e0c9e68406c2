"""Fuzz run folders: damage models at random, load them, and predict with those that load.

Each case damages one file of a small model: bytes are flipped, cut, repeated or reversed; values of
JSON and YAML are replaced by hostile ones; the file is removed, replaced by a folder or by the file
of another model. Loading and prediction may succeed or raise ``SpanwiseError``. Any other
exception, the end of the process, more than 5 s of CPU time or more than 1 GB of additional memory is
a finding.

The seed of a finding is printed; ``--first SEED --count 1 --keep FOLDER`` stores its folder. Add
small ones to ``crashes/run-folders/``, which the test suite replays.

    python bench/fuzz/run_folders.py --models FOLDER-OF-MODELS --count 20000
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from damage import damage

SECONDS, BYTES = 5, 1 << 30
CHUNK = 500  # cases per process
TEXT = "Dr Ana Costa flew from Oslo to New York with aspirin on Monday."


def attempt(folder: Path) -> str | None:
    """Load a folder and predict a sentence. Returns the problem, or None if the folder works or is refused."""
    import spanwise

    start = time.process_time()
    try:
        spanwise.load(folder, "cpu").predict(TEXT)
    except spanwise.SpanwiseError:
        pass
    except BaseException:
        return traceback.format_exc()
    seconds = time.process_time() - start
    return f"{seconds:.1f} s of CPU time" if seconds > SECONDS else None


def limit_memory() -> None:
    """Limit the memory of this process to what it has, and 1 GB."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def prepare_case(seed: int, models: list[Path], folder: Path) -> str:
    """Write the damaged model of a seed. Files are hard links, except the damaged one."""
    chance = random.Random(seed)
    model = chance.choice(models)
    shutil.copytree(model, folder, copy_function=os.link)
    return f"{model.name}/{damage(folder, [other for other in models if other != model], chance)}"


def work(seeds: range, models: list[Path], scratch: Path, keep: Path | None, results: Connection) -> None:
    """Try the cases of some seeds in this process; send the start and the end of each."""
    limit_memory()
    for seed in seeds:
        folder = scratch / f"case-{seed}"
        shutil.rmtree(folder, ignore_errors=True)
        description = prepare_case(seed, models, folder)
        results.send((seed, description, "the process was killed"))
        signal.setitimer(signal.ITIMER_PROF, 4 * SECONDS)  # kills the process
        problem = attempt(folder)
        signal.setitimer(signal.ITIMER_PROF, 0)
        results.send((seed, description, problem))
        if keep:
            shutil.copytree(folder, keep / str(seed))
        shutil.rmtree(folder, ignore_errors=True)


def try_all(seeds: range, jobs: int, *options: Any) -> Iterator[tuple[int, str, str | None]]:
    """Yield the outcome of every seed. A chunk whose process is killed continues in another process."""
    context = multiprocessing.get_context("fork")
    waiting = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    running: dict[Connection, tuple[range, tuple[int, str, str | None] | None]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            receiver, sender = context.Pipe(duplex=False)
            context.Process(target=work, args=(waiting[0], *options, sender)).start()
            sender.close()
            running[receiver] = waiting.pop(0), None
        for receiver in wait(list(running)):
            chunk, case = running[receiver]
            try:
                seed, description, problem = receiver.recv()
            except EOFError:  # the process has ended
                del running[receiver]
                if case is not None:
                    yield case
                    if rest := range(case[0] + 1, chunk.stop):
                        waiting.insert(0, rest)
                continue
            is_start = case is None
            running[receiver] = chunk, (seed, description, problem) if is_start else None
            if not is_start:
                yield seed, description, problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, help="folder of small run folders and exported models")
    parser.add_argument("--count", type=int, default=20_000, help="number of cases")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--keep", type=Path, help="folder to store the damaged models in")
    parser.add_argument(
        "--work", type=Path, default=Path("/tmp/spanwise-fuzz-runs"), help="scratch folder; a RAM disk is fastest"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    scratch = options.work / "cases"
    scratch.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(options.work / "models", ignore_errors=True)
    shutil.copytree(options.models, options.work / "models")  # hard links need the same disk
    models = sorted(path for path in (options.work / "models").iterdir() if path.is_dir())

    # Import everything once; the workers are forks. Their memory is limited when they start.
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for model in models:
        if problem := attempt(model):
            sys.exit(f"{model.name}: not a working model\n{problem}")
    seeds = range(options.first, options.first + options.count)
    kinds: Counter[str] = Counter()
    done, start = 0, time.monotonic()
    for seed, description, problem in try_all(seeds, options.jobs, models, scratch, options.keep):
        done += 1
        if problem is not None:
            kind = problem.strip().splitlines()[-1][:200]
            kinds[kind] += 1
            if kinds[kind] == 1:
                print(f"seed {seed}: {description}\n{problem}", flush=True)
        if done % 1000 == 0:
            print(f"{done:,} folders, {kinds.total()} findings, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{done:,} folders, {kinds.total()} findings of {len(kinds)} kinds, {time.monotonic() - start:.0f} s")
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    sys.exit(bool(kinds))


if __name__ == "__main__":
    main()
