"""The lock that makes a process the only writer of a run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.files.locks import LocksUnavailableError, lock_holder, try_lock


@contextmanager
def only_writer(folder: Path, log: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a folder. Where there are no locks, say so."""
    try:
        lock = try_lock(folder)
    except LocksUnavailableError:
        log(f"note: {folder} cannot be locked on this system; make sure that no other process trains in it")
        yield
        return
    if lock is None:
        message = f"{lock_holder(folder)} is training in this folder; wait for it, or choose another folder"
        raise SpanwiseError(f"{folder}: {message}")
    try:
        yield
    finally:
        lock.release()
