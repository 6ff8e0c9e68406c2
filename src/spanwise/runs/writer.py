"""The lock that makes a process the only writer of a run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from spanwise.files.locks import hold_lock


@contextmanager
def only_writer(folder: Path, log: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a folder. Where there are no locks, say so."""
    with hold_lock(folder, "is training in this folder; wait for it, or choose another folder") as has_lock:
        if not has_lock:
            log(f"note: {folder} cannot be locked on this system; make sure that no other process trains in it")
        yield
