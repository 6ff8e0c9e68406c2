"""Lines and JSON records of files, with their line numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.files.json_arrays import CHUNK, array_items, parse_json


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


def validate_record(shape: TypeAdapter[Any], record: Any, path: Path, line: int) -> Any:
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
