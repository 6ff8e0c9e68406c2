"""Atomic outputs, and portable JSON."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from spanwise.core.errors import SpanwiseError
from spanwise.files.disk import DiskFullError, disk_full_problem, flush, flush_tree, temporary_folder
from spanwise.files.locks import remove_stale_lock
from spanwise.files.work_folders import old_output, remove_leftovers, work_folder

STANDARD_OUTPUT = Path("/dev/stdout")


@contextmanager
def atomic_output(
    path: Path, *, is_folder: bool = False, may_replace: Callable[[Path], bool] = lambda folder: False
) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` if the block succeeds and is deleted if it fails.

    An existing file is replaced atomically; a symbolic link is followed. A folder must be new or empty,
    unless ``may_replace`` returns True for it. A device or pipe (``/dev/stdout``) is not replaced but
    written to when the block ends. The output is on disk before it gets its name, so that a power cut
    leaves the old or the new one. What killed processes left in the folder of ``path`` is removed.
    """
    if is_stream(path) and not is_folder:
        with temporary_folder() as folder:
            temporary = folder / path.name
            yield temporary
            _copy_to_stream(temporary, path)
        return
    if path.is_symlink():
        path = path.resolve()
    parent = check_parent(path)
    remove_leftovers(parent)
    _check_replaceable(path, is_folder, may_replace)
    with _output_errors(path), work_folder(path) as work:
        temporary = work / path.name
        if is_folder:
            temporary.mkdir()
        yield temporary
        flush_tree(temporary)
        if is_folder and path.is_dir():
            if may_replace(path):
                path.replace(old_output(work, path))
            elif os.name == "nt":
                path.rmdir()
        temporary.replace(path)  # fails if files were added to an empty folder in the meantime
        flush(parent)


def check_parent(path: Path) -> Path:
    """Return the folder that an output will be in; a missing one is an error."""
    parent = path.absolute().parent
    if not parent.is_dir():
        raise SpanwiseError(f"{parent}: no such folder; create it first")
    return parent


def check_new_output(path: Path, *, is_folder: bool = False) -> None:
    """Raise the errors of ``atomic_output`` on a path before the work that it would lose."""
    if not is_stream(path) or is_folder:
        check_parent(path)
        _check_replaceable(path, is_folder, lambda folder: False)


def _check_replaceable(path: Path, is_folder: bool, may_replace: Callable[[Path], bool]) -> None:
    if is_folder and path.is_dir():
        remove_stale_lock(path)
    if path.is_dir() and (not is_folder or (any(path.iterdir()) and not may_replace(path))):
        problem = "the folder is not empty; choose another folder" if is_folder else "expected a file, found a folder"
        raise SpanwiseError(f"{path}: {problem}")
    if is_folder and path.exists() and not path.is_dir():
        raise SpanwiseError(f"{path}: expected a folder, found a file")


@contextmanager
def atomic_files(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder whose files replace those of the same names in ``folder`` if the block succeeds.

    Each file is replaced atomically, one after another; other files stay.
    """
    remove_leftovers(folder)
    with _output_errors(folder), work_folder(folder / "files") as work:
        temporary = work / "files"
        temporary.mkdir()
        yield temporary
        flush_tree(temporary)
        for path in sorted(temporary.rglob("*")):  # a folder comes before its files
            target = folder / path.relative_to(temporary)
            if path.is_dir():
                target.mkdir(exist_ok=True)
            else:
                path.replace(target)
        for changed in {folder, *(folder / path.relative_to(temporary) for path in temporary.rglob("*"))}:
            flush(changed)


@contextmanager
def _output_errors(path: Path) -> Iterator[None]:
    """Report problems of the disk in one line."""
    try:
        yield
    except Exception as error:
        output_error = _output_error(path, error)
        if output_error is error:
            raise
        raise output_error from None


def _output_error(path: Path, error: Exception) -> Exception:
    """The error to raise for one that occurred while an output was written."""
    if isinstance(error, DiskFullError) and path.absolute().parent not in error.path.absolute().parents:
        return error  # of another disk, such as that of temporary files
    if problem := disk_full_problem(error):
        return DiskFullError(path, problem)
    if isinstance(error, OSError) and error.filename is None and not isinstance(error, BrokenPipeError):
        return SpanwiseError(f"{path}: not written: {error.strerror or error}")
    return error


def _copy_to_stream(source: Path, path: Path) -> None:
    try:
        with source.open("rb") as file, _open_stream(path) as sink:
            shutil.copyfileobj(file, sink)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SpanwiseError(f"{path}: not written: {error.strerror or error}") from None


def _open_stream(path: Path) -> AbstractContextManager[IO[bytes]]:
    """Open a device or pipe. Standard output is open already: a file that it is redirected to keeps its content."""
    if path != STANDARD_OUTPUT or not isinstance(sys.stdout, io.TextIOWrapper):  # a notebook replaces standard output
        return path.open("wb")
    sys.stdout.flush()
    return nullcontext(sys.stdout.buffer)


def is_stream(path: Path) -> bool:
    """Return True for a device, a pipe or standard output, which is written to and never replaced."""
    return path == STANDARD_OUTPUT or (path.exists() and not path.is_file() and not path.is_dir())


@contextmanager
def open_output(path: Path) -> Iterator[IO[str]]:
    """Open a UTF-8 file for writing, with ``\\n`` line ends on every system."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        yield file


def standard_output() -> IO[str]:
    """Return standard output for data, in UTF-8 in any locale; text for people keeps the locale's encoding."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")
    return sys.stdout


def to_json(item: Any) -> str:
    """Return one line of standard JSON, without NaN and infinity, which only Python accepts."""
    try:
        return json.dumps(item, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SpanwiseError(f"extra data cannot be written as JSON: {error}") from None


def to_readable_json(value: Any) -> str:
    """Return JSON with a line for each value."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Write a readable JSON file atomically."""
    with atomic_output(path) as temporary:
        temporary.write_text(to_readable_json(value), encoding="utf-8")


class JsonArray:
    """Writer of a JSON array, item by item.

    >>> import io
    >>> out = io.StringIO()
    >>> with JsonArray(out) as array:
    ...     array.add({"a": 1})
    ...     array.add({"b": 2})
    >>> out.getvalue()
    '[\\n{"a": 1},\\n{"b": 2}\\n]\\n'
    """

    def __init__(self, file: IO[str]) -> None:
        self.file, self.count = file, 0

    def __enter__(self) -> JsonArray:
        self.file.write("[")
        return self

    def add(self, item: Any) -> None:
        self.add_pieces([to_json(item)])

    def add_pieces(self, pieces: Iterable[str]) -> None:
        """Write an item that is given as pieces of JSON text."""
        self.file.write(",\n" if self.count else "\n")
        self.file.writelines(pieces)
        self.count += 1

    def __exit__(self, *problem: object) -> None:
        self.file.write("\n]\n")
