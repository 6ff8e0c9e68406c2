"""Fixtures for the tests of formats."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from spanwise import Sentence
from spanwise.formats import Ledger


@dataclass
class Workbench:
    """A folder in which format modules read and write."""

    folder: Path

    def file(self, content: str | bytes | list[Any], name: str = "data.json") -> Path:
        """Create a file; a list becomes a JSON array with one item per line, starting on line 2."""
        path = self.folder / name
        if isinstance(content, list):
            content = "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in content) + "\n]\n"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def load(self, module: ModuleType, content: str | bytes | list[Any] | Path) -> tuple[list[Sentence], Ledger]:
        ledger = Ledger()
        path = content if isinstance(content, Path) else self.file(content)
        return list(module.read(path, ledger)), ledger

    def write(self, module: ModuleType, sentences: Iterable[Sentence]) -> tuple[str, Ledger]:
        ledger = Ledger()
        module.write(iter(sentences), self.folder / "out.json", ledger)
        return (self.folder / "out.json").read_text(encoding="utf-8"), ledger

    def round_trip(self, module: ModuleType, sentences: Iterable[Sentence]) -> tuple[list[Sentence], Ledger]:
        """Write and read sentences; return them and the ledger of the writer."""
        _, ledger = self.write(module, sentences)
        return self.load(module, self.folder / "out.json")[0], ledger


@pytest.fixture
def workbench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


def corpus_lines(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file in the interchange format, without the reader of the package."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def corpus() -> Any:
    return corpus_lines
