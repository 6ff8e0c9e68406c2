"""Locks of folders, which the kernel releases when their process exits or dies.

A lock is a file ``.lock`` in the folder, held with ``flock``, with the process id of its holder. The
file itself means nothing: a killed process leaves it, and the next one takes it over. Windows and some
network file systems have no ``flock``; ``try_lock`` raises ``LocksUnavailableError`` there, and
``hold_lock`` works without a lock.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spanwise.core.errors import SpanwiseError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK_NAME = ".lock"
_UNSUPPORTED = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL, errno.EBADF}
_handles: set[int] = set()  # of the locks that this process holds


class LocksUnavailableError(Exception):
    """The system or file system has no locks."""


class FolderLock:
    """A held lock. ``release`` removes its file."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self.handle = path, handle
        _handles.add(handle)

    def release(self) -> None:
        if self.handle in _handles:
            _handles.remove(self.handle)
            with suppress(OSError):  # the folder was removed
                self.path.unlink()
            os.close(self.handle)


def try_lock(folder: Path) -> FolderLock | None:
    """Lock a folder; return None if another process, or this one, already holds its lock."""
    if fcntl is None:
        raise LocksUnavailableError
    path = folder / LOCK_NAME
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous holder may have removed the file after it was opened here.
            if _is_same_file(path, handle):
                with suppress(OSError):  # the disk is full; only the message of another process needs this
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
                return FolderLock(path, handle)
        except BlockingIOError:
            os.close(handle)
            return None
        except OSError as error:
            os.close(handle)
            if error.errno in _UNSUPPORTED:
                with suppress(OSError):
                    path.unlink()
                raise LocksUnavailableError from None
            raise
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@contextmanager
def hold_lock(folder: Path, activity: str) -> Iterator[bool]:
    """Hold the lock of a folder, and yield whether there are locks.

    ``activity`` is what another process does in the folder, for the error if it holds the lock.
    """
    try:
        lock = try_lock(folder)
    except LocksUnavailableError:
        yield False
        return
    if lock is None:
        raise SpanwiseError(f"{folder}: {lock_holder(folder)} {activity}")
    try:
        yield True
    finally:
        lock.release()


def lock_holder(folder: Path) -> str:
    """Name the process that holds the lock of a folder, as far as it is known."""
    try:
        process, host = (folder / LOCK_NAME).read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return "another process"
    return f"process {process}" if host == socket.gethostname() else f"process {process} on {host}"


def remove_stale_lock(folder: Path) -> None:
    """Remove the lock file that a killed process left in a folder."""
    with suppress(OSError, LocksUnavailableError):
        if (folder / LOCK_NAME).exists() and (lock := try_lock(folder)):
            lock.release()


def _is_same_file(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _close_in_child() -> None:
    """Close the locks in a forked process: a worker must not hold them when its parent is killed."""
    for handle in _handles:
        with suppress(OSError):
            os.close(handle)
    _handles.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
