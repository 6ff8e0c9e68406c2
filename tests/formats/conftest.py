"""What the tests of formats share."""

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
    """Reads and writes with one format module, in a folder of its own."""

    folder: Path

    def file(self, content: str | bytes | list[Any], name: str = "data.json") -> Path:
        """A file with this content; a list is written as a JSON array, an item a line, the first on line 2."""
        path = self.folder / name
        if isinstance(content, list):
            content = "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in content) + "\n]\n"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def load(self, module: ModuleType, content: str | bytes | list[Any] | Path) -> tuple[list[Sentence], Ledger]:
        ledger = Ledger()
        path = content if isinstance(content, Path) else self.file(content)
        return list(module.read(path, ledger)), ledger

    def written(self, module: ModuleType, sentences: Iterable[Sentence]) -> tuple[str, Ledger]:
        ledger = Ledger()
        module.write(iter(sentences), self.folder / "out.json", ledger)
        return (self.folder / "out.json").read_text(encoding="utf-8"), ledger

    def back(self, module: ModuleType, sentences: Iterable[Sentence]) -> tuple[list[Sentence], Ledger]:
        """What is read after writing, and what writing lost."""
        _, ledger = self.written(module, sentences)
        return self.load(module, self.folder / "out.json")[0], ledger


@pytest.fixture
def workbench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


def corpus_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a corpus in the interchange format, read without our reader."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def corpus() -> Any:
    return corpus_lines
