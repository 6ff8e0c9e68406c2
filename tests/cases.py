"""Helpers for tests that loop over many cases: named failures, CPU limits and operation counts."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def in_case(name: str) -> Iterator[None]:
    """Name the case in the traceback of any failure in the block."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the case: {name}")
        raise


@contextmanager
def limit_cpu(seconds: float, name: str) -> Iterator[None]:
    """Fail if the block needs more CPU time of this process, whatever else runs on the machine.

    Limits are far above the needed time: they stop code that would practically never end.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"not finished after {seconds} seconds of CPU time")

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        with in_case(name):
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def count_calls(function: Callable[[], object]) -> int:
    """Count the calls of Python and C functions in a run: work that does not depend on the machine."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    previous = sys.getprofile()
    sys.setprofile(trace)
    try:
        function()
    finally:
        sys.setprofile(previous)
    return count
