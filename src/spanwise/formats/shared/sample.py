"""The start of a file, read once for the detection of its format."""

from __future__ import annotations

import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import pydantic_core

SAMPLE_BYTES = 1 << 17
MAX_LINE_BYTES = 1 << 23
MAX_RECORDS = 200
_SEPARATORS = re.compile(r"[ \t\r\n,]*")


class Sample:
    """The first 128 KiB of a file as text, lines and JSON records. A folder has only its path.

    A JSON sample includes its last line completely, up to 8 MiB, because it may be the only record.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_folder = path.is_dir()
        self.raw, self.is_complete = b"", True
        if not self.is_folder:
            with path.open("rb") as file:
                self.raw = file.read(SAMPLE_BYTES)
                if self.raw.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
                    self.raw += file.readline(MAX_LINE_BYTES)
                self.is_complete = not file.read(1)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Sample:
        """Return a sample of the start of a stream, which has no path."""
        sample = cls.__new__(cls)
        sample.path, sample.is_folder, sample.raw, sample.is_complete = Path(), False, raw, True
        return sample

    @cached_property
    def text(self) -> str:
        return self.raw.decode("utf-8", errors="replace").removeprefix("\ufeff")

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the sample, without a last one that may be cut off."""
        lines = [line.removesuffix("\r") for line in self.text.split("\n")]
        return lines if self.is_complete else lines[:-1]

    @cached_property
    def records(self) -> list[Any]:
        """The first JSON records, from an array or from lines; empty if the file is not JSON."""
        text = self.text.lstrip()
        if text.startswith("["):
            items = self._array_items(text)
            if items:
                return items
        records: list[Any] = []
        for line in self.lines[:MAX_RECORDS]:
            if line.strip():
                try:
                    records.append(pydantic_core.from_json(line))
                except ValueError:
                    break
        return records

    @staticmethod
    def _array_items(text: str) -> list[Any]:
        decoder, position = json.JSONDecoder(), 1
        items: list[Any] = []
        while len(items) < MAX_RECORDS:
            separators = _SEPARATORS.match(text, position)
            try:
                item, position = decoder.raw_decode(text, separators.end() if separators else position)
            except (ValueError, RecursionError):
                break
            items.append(item)
        return items

    @cached_property
    def dicts(self) -> list[dict[str, Any]]:
        return [record for record in self.records if isinstance(record, dict)]

    def all_have(self, *keys: str) -> bool:
        """Return True if there are records and each of them has all these keys."""
        return bool(self.dicts) and all(key in record for record in self.dicts for key in keys)

    def list_items(self, key: str) -> list[Any]:
        """Return the items of the lists under a key, over all records."""
        lists = (record.get(key) for record in self.dicts)
        return [item for value in lists if isinstance(value, list) for item in value]
