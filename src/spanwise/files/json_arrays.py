"""Streaming reader for a file that is one JSON array, or JSON objects with arrays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from pathlib import Path
from typing import IO, Any

import pydantic_core

from spanwise.core.errors import FormatError

CHUNK = 1 << 16


def parse_json(text: str, path: Path, line: int) -> Any:
    """Parse one JSON value; report a problem with its file and line."""
    try:
        return pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise FormatError(path, line, f"not JSON: {error}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_array_items(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the items of the array in a file, with their line numbers."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from _ArrayReader(path, file).items()


def read_object_members(path: Path, streamed: Set[str]) -> Iterator[tuple[int, str | None, Any]]:
    """Yield the members of the objects in a file, with their line numbers and keys.

    Arrays under the ``streamed`` keys are yielded item by item. The key None marks the end of an object.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from _ArrayReader(path, file).members(streamed)


class _ArrayReader:
    """Reader of an array or of objects with one chunk of text in memory; the chunk grows only if one item needs more."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self.path, self.file = path, file
        self.container = "array"  # or "object"
        self.buffer, self.offset, self.line, self.is_at_end = "", 0, 1, False

    def items(self) -> Iterator[tuple[int, Any]]:
        self._peek()
        yield from self._array()  # its opening bracket was checked by read_json_records
        if self._peek():
            raise self._error("unexpected text after the end of the JSON array")

    def members(self, streamed: Set[str]) -> Iterator[tuple[int, str | None, Any]]:
        self.container = "object"
        while mark := self._peek():
            if mark != "{":
                raise self._error(f"expected a JSON object, found {mark!r}")
            line = self.line
            for _ in self._separated("}", "a member of the JSON object"):
                key, end = self._item()
                self._go_to(end)
                if not isinstance(key, str) or self._peek() != ":":
                    raise self._error("expected a key and ':' in the JSON object")
                self._go_to(self.offset + 1)
                if self._peek() == "[" and key in streamed:
                    yield from ((number, key, item) for number, item in self._array())
                else:
                    value, end = self._item()
                    yield self.line, key, value
                    self._go_to(end)
            yield line, None, None

    def _array(self) -> Iterator[tuple[int, Any]]:
        for _ in self._separated("]", "an item of the JSON array"):
            item, end = self._item()
            yield self.line, item
            self._go_to(end)

    def _separated(self, close: str, description: str) -> Iterator[None]:
        """Yield at the start of each part between the opening bracket here and the closing one."""
        self._go_to(self.offset + 1)
        mark = self._peek()
        while mark != close:
            yield
            mark = self._peek()
            if mark not in (",", close):
                raise self._error(f"expected ',' or {close!r} after {description}")
            if mark == ",":
                self._go_to(self.offset + 1)
                self._peek()
        self._go_to(self.offset + 1)

    def _error(self, problem: str) -> FormatError:
        return FormatError(self.path, self.line, problem)

    def _fill(self, size: int) -> None:
        try:
            piece = self.file.read(size)
        except UnicodeDecodeError:
            raise self._error("not UTF-8 at or after this line; pass --encoding latin-1 or another encoding") from None
        self.is_at_end = not piece
        self.buffer, self.offset = self.buffer[self.offset :] + piece, 0

    def _go_to(self, offset: int) -> None:
        self.line += self.buffer.count("\n", self.offset, offset)
        self.offset = offset

    def _peek(self) -> str:
        """Skip white space and return the next character, or an empty string at the end of the file."""
        while True:
            if match := _SPACE.match(self.buffer, self.offset):
                self._go_to(match.end())
            if self.offset < len(self.buffer) or self.is_at_end:
                return self.buffer[self.offset : self.offset + 1]
            self._fill(CHUNK)

    def _item(self) -> tuple[Any, int]:
        """Return the item that starts here, and its end in the buffer."""
        if self.offset == len(self.buffer):
            raise self._error(f"the JSON {self.container} does not end; the file may be truncated")
        size = CHUNK
        while True:
            try:
                item, end = _DECODER.raw_decode(self.buffer, self.offset)
                # A number may continue after the end of the buffer: 1 of 1.5, 1.5 of 1.5e3.
                if self.is_at_end or end + 2 < len(self.buffer) or not isinstance(item, int | float):
                    break
            except RecursionError:
                raise self._error("not JSON: nested too deeply") from None
            except ValueError as error:
                if self.is_at_end or _is_final(error, self.buffer):
                    raise self._error(f"not JSON: {error}") from None
            size *= 2
            self._fill(size)
        if _SURROGATE.search(self.buffer, self.offset, end):
            parse_json(self.buffer[self.offset : end], self.path, self.line)
        return item, end


def _is_final(error: ValueError, buffer: str) -> bool:
    """Return True if the error is well before the end of the buffer, so more text cannot fix it."""
    if not isinstance(error, json.JSONDecodeError):  # a number too long, or NaN
        return True
    return len(buffer) > 64 * CHUNK and error.pos < len(buffer) // 2 and "Unterminated" not in error.msg
