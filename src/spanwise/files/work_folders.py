"""Folders in which an output is written before it replaces another, and their leftovers.

The work folder of ``out`` is ``.out.xxxxxxxx`` next to it, locked as long as its process lives. It has
the new output ``out`` and, while a folder is replaced, the old one as ``out.old``.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.files.disk import disk_full_problem, flush
from spanwise.files.locks import LOCK_NAME, FolderLock, LocksUnavailableError, try_lock

_WORK_NAME = re.compile(r"\.(.+)\.[\w-]{8}", re.ASCII | re.DOTALL)


@contextmanager
def work_folder(target: Path) -> Iterator[Path]:
    """Create the work folder of an output, and remove it at the end."""
    parent, lock = target.absolute().parent, None
    # The name is chosen before the folder is created, so that it is deleted even if an interrupt comes in between.
    work = parent / f".{target.name}.{secrets.token_urlsafe(6)}"
    try:
        try:
            work.mkdir(0o700)
            lock = _lock(work)
        except OSError as error:
            if disk_full_problem(error):
                raise
            raise SpanwiseError(f"{parent}: cannot be written to: {error.strerror}") from None
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if lock is not None:
            lock.release()


def _lock(work: Path) -> FolderLock | None:
    """Lock a new work folder. Another process may take it for a leftover before it is locked, and remove it."""
    while True:
        try:
            if lock := try_lock(work):
                return lock
        except LocksUnavailableError:
            return None
        except FileNotFoundError:
            work.mkdir(0o700)


def old_output(work: Path, target: Path) -> Path:
    """The place of the old folder while it is replaced."""
    return work / f"{target.name}.old"


def remove_leftovers(parent: Path) -> None:
    """Remove the work folders of killed processes, after an interrupted replacement of a folder is completed.

    Work folders of running processes stay, and all of them where there are no locks.
    """
    with suppress(OSError):
        for entry in list(os.scandir(parent)):
            match = _WORK_NAME.fullmatch(entry.name)
            if match and entry.is_dir(follow_symlinks=False):
                _remove_leftover(Path(entry.path), parent / match[1])


def _remove_leftover(work: Path, target: Path) -> None:
    old, new = old_output(work, target), work / target.name
    with suppress(OSError, LocksUnavailableError):
        if not {path.name for path in work.iterdir()} <= {old.name, new.name, LOCK_NAME}:
            return  # a folder of the user
        lock = try_lock(work)
        if lock is None:
            return  # its process is running
        try:
            if old.exists() and not os.path.lexists(target):
                # The new folder was complete before the old one was moved.
                (new if new.exists() else old).replace(target)
                flush(target.parent)
            shutil.rmtree(work, ignore_errors=True)
        finally:
            lock.release()
