"""Files in and out: lines and JSON records with their line numbers, and outputs that appear whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pydantic import TypeAdapter, ValidationError

from spanwise.errors import FormatError, SpanwiseError
from spanwise.formats.json_arrays import CHUNK, array_items, parse_json

_BESIDE = {".ann": ".txt", ".txt": ".ann"}  # what brat has beside a file


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their numbers, without their line ends.

    Bytes are decoded line by line, so that a broken one is named by its line; only ``\\n`` and ``\\r\\n`` end a line.
    """
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            yield number, decode(raw, path, number).removesuffix("\n").removesuffix("\r")


def decode(raw: bytes, path: Path | str, line: int) -> str:
    """UTF-8 text of one line, a byte-order mark at the file's beginning left out."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(path, line, f"not UTF-8 at byte {error.start + 1} of the line") from None
    return text.removeprefix("\ufeff") if line == 1 else text


def read_text(path: Path) -> str:
    """A whole UTF-8 file, line ends untouched: standoff formats count characters."""
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(path, raw.count(b"\n", 0, error.start) + 1, "not UTF-8") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object that fills a file, as run folders have them; one that is cut off or something else is named."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise SpanwiseError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise SpanwiseError(f"{path}: cannot be read, it may be cut off: not JSON: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict):
        raise SpanwiseError(f"{path}: cannot be read: expected a JSON object")
    return found


def readable(name: str) -> str:
    """A file's name as text: what the system could not decode in it is replaced.

    >>> readable("caf\\udce9")
    'caf\ufffd'
    """
    return os.fsencode(name).decode("utf-8", "replace")


def stem(path: Path) -> str:
    return readable(path.stem)


def default_id(path: Path, number: int) -> str:
    """The id of what has none: the file's name and its number among the sentences (or documents) of the file, from 0.

    >>> default_id(Path("corpus/train.conll"), 0)
    'train-0'
    """
    return f"{stem(path)}-{number}"


def json_records(path: Path) -> Iterator[tuple[int, Any]]:
    """The records of a JSON file with their line numbers: one array of them, or one a line. Streams either."""
    with path.open("rb") as file:
        head = file.read(CHUNK).removeprefix(b"\xef\xbb\xbf").lstrip()
    return array_items(path) if head.startswith(b"[") and not _is_lines_of_arrays(head) else _json_lines(path)


def _is_lines_of_arrays(head: bytes) -> bool:
    first, _, rest = head.partition(b"\n")
    return rest.lstrip().startswith(b"[") and first.rstrip().endswith(b"]")


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in lines(path):
        if line.strip():
            yield number, parse_json(line, path, number)


def checked(shape: TypeAdapter[Any], record: Any, path: Path, line: int) -> Any:
    """The record, when it has the shape; otherwise an error that names the first key that is wrong.

    Readers of JSON formats describe a record as a ``TypedDict`` and need no checks of their own.
    """
    try:
        return shape.validate_python(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the record"
        value = repr(first["input"])
        found = "" if first["type"] == "missing" else f", found {value if len(value) < 60 else value[:57] + '…'}"
        raise FormatError(path, line, f"{place}: {first['msg'][:1].lower()}{first['msg'][1:]}{found}") from None


@contextmanager
def replacing(path: Path, *, folder: bool = False, over: Callable[[Path], bool] = lambda folder: False) -> Iterator[Path]:
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
