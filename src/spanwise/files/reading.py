"""Readers of lines and JSON records with their line numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.files.encodings import encoding_advice
from spanwise.files.json_arrays import CHUNK, parse_json, read_array_items


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file with their numbers, without line ends.

    Only ``\\n`` and ``\\r\\n`` end a line. Lines are decoded one at a time, so an error names the line
    of an invalid byte.
    """
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            yield number, decode_line(raw, path, number).removesuffix("\n").removesuffix("\r")


def decode_line(raw: bytes, path: Path | str, line: int) -> str:
    """Decode one line of UTF-8; remove a byte-order mark from the first line."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 at byte {error.start + 1} of the line; {encoding_advice(raw, path)}"
        raise FormatError(path, line, problem) from None
    return text.removeprefix("\ufeff") if line == 1 else text


def read_text(path: Path) -> str:
    """Read a whole UTF-8 file with its original line ends, because standoff formats count characters."""
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise FormatError(path, line, f"not UTF-8; {encoding_advice(raw)}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that is one JSON object, such as the files of a run folder."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise SpanwiseError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise SpanwiseError(f"{path}: not valid JSON ({' '.join(str(error).split())}); the file may be truncated") from None
    if not isinstance(content, dict):
        raise SpanwiseError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


def read_json_records(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the records of a JSON file (one array) or JSON Lines file, with their line numbers."""
    with path.open("rb") as file:
        head = file.read(CHUNK).removeprefix(b"\xef\xbb\xbf").lstrip()
    return read_array_items(path) if head.startswith(b"[") and not _is_lines_of_arrays(head) else _json_lines(path)


def _is_lines_of_arrays(head: bytes) -> bool:
    first, _, rest = head.partition(b"\n")
    return rest.lstrip().startswith(b"[") and first.rstrip().endswith(b"]")


def _json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in read_lines(path):
        if line.strip():
            yield number, parse_json(line, path, number)


def validate_record(shape: TypeAdapter[Any], record: Any, path: Path, line: int) -> Any:
    """Return the record if it matches the shape; otherwise raise an error that names the first wrong key.

    JSON formats describe a record as a ``TypedDict`` and need no further checks.
    """
    try:
        return shape.validate_python(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "the record"
        value = repr(first["input"])
        actual = "" if first["type"] == "missing" else f", found {value if len(value) < 60 else value[:57] + '…'}"
        raise FormatError(path, line, f"{key}: {first['msg'][:1].lower()}{first['msg'][1:]}{actual}") from None
