"""The beginning of a file, looked at once, from which each format tells whether it is its own."""

from __future__ import annotations

import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import pydantic_core

SIZE = 1 << 17
LONGEST = 1 << 23
RECORDS = 200
_BETWEEN = re.compile(r"[ \t\r\n,]*")


class Sample:
    """The first 128 KiB of a file, as text, lines and JSON records; of a folder, its path alone.

    Of JSON, the line where that ends is taken whole, up to 8 MiB: it may be the first one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_folder = path.is_dir()
        self.raw, self.is_whole = b"", True
        if not self.is_folder:
            with path.open("rb") as file:
                self.raw = file.read(SIZE)
                if self.raw.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
                    self.raw += file.readline(LONGEST)
                self.is_whole = not file.read(1)

    @cached_property
    def text(self) -> str:
        return self.raw.decode("utf-8", errors="replace").removeprefix("\ufeff")

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the sample, without a last one that may be cut off."""
        found = [line.removesuffix("\r") for line in self.text.split("\n")]
        return found if self.is_whole else found[:-1]

    @cached_property
    def records(self) -> list[Any]:
        """The JSON records at the beginning, whether they stand in an array or one a line; empty where it is not JSON."""
        text = self.text.lstrip()
        if text.startswith("["):
            items = self._array_items(text)
            if items:
                return items
        found: list[Any] = []
        for line in self.lines[:RECORDS]:
            if line.strip():
                try:
                    found.append(pydantic_core.from_json(line))
                except ValueError:
                    break
        return found

    @staticmethod
    def _array_items(text: str) -> list[Any]:
        decoder, at = json.JSONDecoder(), 1
        found: list[Any] = []
        while len(found) < RECORDS:
            between = _BETWEEN.match(text, at)
            try:
                item, at = decoder.raw_decode(text, between.end() if between else at)
            except (ValueError, RecursionError):
                break
            found.append(item)
        return found

    @cached_property
    def dicts(self) -> list[dict[str, Any]]:
        return [record for record in self.records if isinstance(record, dict)]

    def have(self, *keys: str) -> bool:
        """True when every record has every one of these keys."""
        return bool(self.dicts) and all(key in record for record in self.dicts for key in keys)

    def items(self, key: str) -> list[Any]:
        """All items of the lists under this key, over the records."""
        lists = (record.get(key) for record in self.dicts)
        return [item for value in lists if isinstance(value, list) for item in value]
