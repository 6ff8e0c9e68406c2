"""A training that is killed at random moments and resumed ends with the same weights.

The processes are forked from one that has imported everything, so that they start quickly.
``bench/kill.py`` does the same with the command line, and more often.
"""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from tiny import digest, fit

PRELOADED = ("spanwise.training.run", "spanwise.heads.spanner", "spanwise.encoders.static", "accelerate", "torch._dynamo")
# Most of the time is spent writing checkpoints.
OPTIONS: dict[str, Any] = {"recipe": "spanner", "epochs": 2, "checkpoint_steps": 1, "overrides": ("head.negatives=6",)}


def start(folder: Path, resume: bool) -> ForkServerProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    process = context.Process(target=fit, args=(folder,), kwargs={**OPTIONS, "resume": resume})
    process.start()
    return process


def wait_for(process: ForkServerProcess) -> float:
    start_time = time.monotonic()
    process.join(60)
    assert process.exitcode == 0
    return time.monotonic() - start_time


def test_killed_at_random_moments(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    fit(whole, **OPTIONS)
    seconds = wait_for(start(tmp_path / "again", False))
    assert digest(tmp_path / "again") == digest(whole)
    choose = random.Random()
    moments: list[float] = []
    kills = 0
    while kills < 5:
        process = start(parts, resume=bool(moments))
        moments.append(choose.uniform(0, 0.5 * seconds))
        process.join(moments[-1])
        if process.exitcode is not None:
            break  # it finished before it could be killed
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        kills += 1
    if not (parts / "run.json").exists():
        wait_for(start(parts, True))
    assert kills, moments
    assert digest(parts) == digest(whole), moments
    assert sorted(p.name for p in parts.iterdir()) == sorted(p.name for p in whole.iterdir()), moments
