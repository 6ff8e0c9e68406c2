"""One big JSON array, item by item: files of any size, of which little is in memory at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pydantic_core

from spanwise.core.errors import FormatError

CHUNK = 1 << 16


def parse_json(text: str, path: Path, line: int) -> Any:
    """One JSON value; what is wrong with it is said with its place."""
    try:
        return pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise FormatError(path, line, f"not JSON: {error}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def array_items(path: Path) -> Iterator[tuple[int, Any]]:
    """The items of the array that fills a file, with their lines."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from _ArrayReader(path, file).items()


class _ArrayReader:
    """Reads one big array, a chunk of text in memory at a time (grown only where one item needs more)."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self.path, self.file = path, file
        self.buffer, self.at, self.line, self.at_end = "", 0, 1, False

    def items(self) -> Iterator[tuple[int, Any]]:
        self._peek()
        self._go_to(self.at + 1)  # the opening bracket: json_records looked
        mark = self._peek()
        while mark != "]":
            item, end = self._item()
            yield self.line, item
            self._go_to(end)
            mark = self._peek()
            if mark not in (",", "]"):
                raise self._error("expected ',' or ']' behind an item of the JSON array")
            if mark == ",":
                self._go_to(self.at + 1)
                self._peek()
        self._go_to(self.at + 1)
        if self._peek():
            raise self._error("something stands behind the end of the JSON array")

    def _error(self, problem: str) -> FormatError:
        return FormatError(self.path, self.line, problem)

    def _fill(self, size: int) -> None:
        try:
            piece = self.file.read(size)
        except UnicodeDecodeError:
            raise self._error("not UTF-8 here or a little further on") from None
        self.at_end = not piece
        self.buffer, self.at = self.buffer[self.at :] + piece, 0

    def _go_to(self, place: int) -> None:
        self.line += self.buffer.count("\n", self.at, place)
        self.at = place

    def _peek(self) -> str:
        """The next character that is no white space; nothing at the end of the file."""
        while True:
            if match := _SPACE.match(self.buffer, self.at):
                self._go_to(match.end())
            if self.at < len(self.buffer) or self.at_end:
                return self.buffer[self.at : self.at + 1]
            self._fill(CHUNK)

    def _item(self) -> tuple[Any, int]:
        """The item that begins here, and where in the buffer it ends."""
        if self.at == len(self.buffer):
            raise self._error("the JSON array does not end: the file seems cut off")
        size = CHUNK
        while True:
            try:
                item, end = _DECODER.raw_decode(self.buffer, self.at)
                # What looks like a number may go on behind the buffer's end: 1 of 1.5, 1.5 of 1.5e3.
                if self.at_end or end + 2 < len(self.buffer) or not isinstance(item, int | float):
                    break
            except RecursionError:
                raise self._error("not JSON: nested too deeply") from None
            except ValueError as error:
                if self.at_end or _is_hopeless(error, self.buffer):
                    raise self._error(f"not JSON: {error}") from None
            size *= 2
            self._fill(size)
        if _SURROGATE.search(self.buffer, self.at, end):
            parse_json(self.buffer[self.at : end], self.path, self.line)
        return item, end


def _is_hopeless(error: ValueError, buffer: str) -> bool:
    """True when the fault lies well before the end of what was read, so that more text cannot mend it."""
    if not isinstance(error, json.JSONDecodeError):  # a number too long, or NaN
        return True
    return len(buffer) > 64 * CHUNK and error.pos < len(buffer) // 2 and "Unterminated" not in error.msg
