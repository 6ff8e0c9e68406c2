"""Atomic outputs, and portable JSON."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from spanwise.core.errors import SpanwiseError


@contextmanager
def atomic_output(
    path: Path, *, is_folder: bool = False, may_replace: Callable[[Path], bool] = lambda folder: False
) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` if the block succeeds and is deleted if it fails.

    An existing file is replaced atomically; a symbolic link is followed. A folder must be new or empty,
    unless ``may_replace`` returns True for it. A device or pipe (``/dev/stdout``) is not replaced but
    written to when the block ends.
    """
    if is_stream(path) and not is_folder:
        with tempfile.TemporaryDirectory() as temporary_folder:
            temporary = Path(temporary_folder, path.name)
            yield temporary
            try:
                with temporary.open("rb") as source, path.open("wb") as sink:
                    shutil.copyfileobj(source, sink)
            except BrokenPipeError:
                raise
            except OSError as error:
                raise SpanwiseError(f"{path}: not written: {error.strerror or error}") from None
        return
    if path.is_symlink():
        path = path.resolve()
    parent = path.absolute().parent
    if not parent.is_dir():
        raise SpanwiseError(f"{parent}: no such folder")
    if path.is_dir() and (not is_folder or (any(path.iterdir()) and not may_replace(path))):
        raise SpanwiseError(f"{path}: {'the folder is not empty' if is_folder else 'expected a file, found a folder'}")
    if is_folder and path.exists() and not path.is_dir():
        raise SpanwiseError(f"{path}: expected a folder, found a file")
    # The name is chosen before the folder is created, so that it is deleted even if an interrupt comes in between.
    work = parent / f".{path.name}.{secrets.token_urlsafe(6)}"
    temporary = work / path.name
    try:
        try:
            work.mkdir(0o700)
        except OSError as error:
            raise SpanwiseError(f"{parent}: cannot be written to: {error.strerror}") from None
        if is_folder:
            temporary.mkdir()
        yield temporary
        if is_folder and path.is_dir() and may_replace(path):
            path.replace(work / f"{path.name}.old")
        elif is_folder and path.is_dir():
            path.rmdir()  # fails if files were added in the meantime
        temporary.replace(path)
    except OSError as error:
        if error.filename is not None:
            raise
        raise SpanwiseError(f"{path}: not written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def is_stream(path: Path) -> bool:
    """Return True for a device or a pipe, which is written to and never replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def open_output(path: Path) -> Iterator[IO[str]]:
    """Open a UTF-8 file for writing, with ``\\n`` line ends on every system."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        yield file


def to_json(item: Any) -> str:
    """Return one line of standard JSON, without NaN and infinity, which only Python accepts."""
    try:
        return json.dumps(item, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SpanwiseError(f"extra data cannot be written as JSON: {error}") from None


def write_json(path: Path, value: Any) -> None:
    """Write a readable JSON file atomically."""
    with atomic_output(path) as temporary:
        temporary.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


class JsonArray:
    """Writes a JSON array item by item.

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
        self.file.write(",\n" if self.count else "\n")
        self.file.write(to_json(item))
        self.count += 1

    def __exit__(self, *problem: object) -> None:
        self.file.write("\n]\n")
