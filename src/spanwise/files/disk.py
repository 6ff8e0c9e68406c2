"""Files that survive a power cut, and errors of a full disk."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from spanwise.core.errors import SpanwiseError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SHORT_WRITE = re.compile(r"\d+ requested and \d+ written")  # NumPy's error, which has no code
_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF, errno.EACCES}
MANY_FILES = 1000  # one sync of the whole system is faster than this many of single files


class DiskFullError(SpanwiseError):
    """There is no space to write ``path``."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"{path}: not written: {problem}; free some space and try again")


def disk_full_problem(error: Exception) -> str | None:
    """Return the system's message if an error, of any library, was caused by a full disk; otherwise None."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno) if error.errno in _FULL else None
    text = str(error)
    if isinstance(error, OSError) and _SHORT_WRITE.fullmatch(text):
        return os.strerror(errno.ENOSPC)
    codes = (code for code in _FULL if os.strerror(code) in text or f"os error {code})" in text)
    return next(map(os.strerror, codes), None)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder for intermediate files; if its disk is full, the error names it."""
    with tempfile.TemporaryDirectory(prefix="spanwise-") as name:
        try:
            yield Path(name)
        except Exception as error:
            if not isinstance(error, SpanwiseError) and (problem := disk_full_problem(error)):
                raise DiskFullError(Path(name), f"{problem} (TMPDIR sets the folder of temporary files)") from None
            raise


@contextmanager
def temporary_copy(source: IO[bytes], name: str) -> Iterator[Path]:
    """Copy a stream to a temporary file: it can be read only once, and most readers sample its start."""
    with temporary_folder() as folder:
        copy = folder / name
        with source, copy.open("wb") as sink:
            shutil.copyfileobj(source, sink)
        yield copy


def flush(path: Path) -> None:
    """Wait until a file or folder is on disk, where the system allows it."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def flush_tree(path: Path) -> None:
    """Wait until a file, or a folder with all its files, is on disk."""
    paths = [*path.rglob("*"), path] if path.is_dir() else [path]
    if len(paths) > MANY_FILES and hasattr(os, "sync"):
        os.sync()
    else:
        for item in paths:
            if not item.is_symlink():
                flush(item)
