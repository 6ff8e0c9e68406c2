"""Outputs that appear whole or not at all, and JSON that every program can read."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from spanwise.core.errors import SpanwiseError

_BESIDE = {".ann": ".txt", ".txt": ".ann"}  # what brat has beside a file


@contextmanager
def atomic_output(path: Path, *, folder: bool = False, over: Callable[[Path], bool] = lambda folder: False) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends well and vanishes when it does not.

    A file is replaced at once; where the path is a link, the file it leads to is. A folder may be new or empty: an existing one
    with content is never touched, unless ``over`` says of it that it may be replaced. A device or a pipe (``/dev/stdout``) is
    no file to replace: it is written to at the end.
    """
    if is_stream(path) and not folder:
        with tempfile.TemporaryDirectory() as elsewhere:
            temporary = Path(elsewhere, path.name)
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
    if path.is_dir() and (not folder or (any(path.iterdir()) and not over(path))):
        raise SpanwiseError(f"{path}: {'is not empty' if folder else 'is a folder, a file was expected'}")
    if folder and path.exists() and not path.is_dir():
        raise SpanwiseError(f"{path}: is a file, a folder was expected")
    work = parent / f".{path.name}.{secrets.token_urlsafe(6)}"  # named before it is made: an interrupt may come between
    temporary = work / path.name
    try:
        try:
            work.mkdir(0o700)
        except OSError as error:
            raise SpanwiseError(f"{parent}: cannot be written to: {error.strerror}") from None
        if folder:
            temporary.mkdir()
        yield temporary
        if folder and path.is_dir() and over(path):
            path.replace(work / f"{path.name}.old")
        elif folder and path.is_dir():
            path.rmdir()  # which fails where something was put into it meanwhile
        temporary.replace(path)
    except OSError as error:
        if error.filename is not None:
            raise
        raise SpanwiseError(f"{path}: not written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def is_stream(path: Path) -> bool:
    """True for what is written to and never replaced: a device, a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def check_no_input(target: Path, sources: Iterable[Path]) -> None:
    """An output that is one of the inputs, or a file in a folder that is one, would destroy what it is made from.

    A text and its annotations beside it (brat's ``.txt`` and ``.ann``) are one input, whichever is named.
    """
    if not target.exists() or is_stream(target):
        return
    for source in sources:
        is_inside = source.is_dir() and target.is_file() and target.resolve().is_relative_to(source.resolve())
        beside = source.with_suffix(_BESIDE[source.suffix]) if source.suffix in _BESIDE else source
        if is_inside or any(path.exists() and target.samefile(path) for path in (source, beside)):
            raise SpanwiseError(f"{target}: is an input too, and would be replaced; choose another output")


@contextmanager
def writing(path: Path) -> Iterator[IO[str]]:
    """A UTF-8 file to write, with ``\\n`` line ends on every system."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        yield file


def to_json(item: Any) -> str:
    """One line of JSON that every program can read: without NaN and infinite numbers, which only Python's has."""
    try:
        return json.dumps(item, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SpanwiseError(f"something kept with the data cannot be written as JSON: {error}") from None


class JsonArray:
    """Writes the items of one JSON array as they come.

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
