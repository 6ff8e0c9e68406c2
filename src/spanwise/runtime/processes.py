"""Worker processes: how they start and end. Imports no torch."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

STOP_SECONDS = 10.0  # for a process to remove its temporary files


def process_context(modules: Sequence[str]) -> Any:
    """The way processes are started: forked from a server that has imported ``modules``, where possible.

    A fork of this process itself could inherit locked locks of its threads.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver, resource_tracker

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    # Files of the current folder must not replace modules of the server, such as a user's random.py.
    is_safe = "PYTHONSAFEPATH" in os.environ
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    # Interrupts are for this process: the server inherits the mask. It would print a traceback while it imports.
    resource_tracker.ensure_running()  # first, because its start unblocks the signal
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if not is_safe:
            del os.environ["PYTHONSAFEPATH"]
    return context


def prepare_process(threads: int) -> None:
    """Set signals and threads of a new process: interrupts are for the parent, and SIGTERM removes temporary files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    from spanwise.runtime.threads import use_threads

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    use_threads(threads)


def join_or_kill(process: Any) -> None:
    """Wait until a process that was asked to stop has ended; kill it if that takes too long."""
    process.join(STOP_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()


def describe_exit(code: int | None) -> str:
    """Describe the exit code of a process.

    >>> describe_exit(-9), describe_exit(1)
    ('was ended by signal 9 (SIGKILL)', 'ended with exit code 1')
    """
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"was ended by signal {-code} ({signal.Signals(-code).name})"
    return f"ended with exit code {code}"
