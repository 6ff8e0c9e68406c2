"""``bench/join.py``: consecutive sentences become texts of a limited size, and no word is lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from join import join


@pytest.mark.parametrize(
    ("limit", "texts"),
    [(100, ["a b c d e f"]), (5, ["a b c d e", "f"]), (4, ["a b", "c d e f"]), (1, ["a b", "c d e", "f"])],
)
def test_sentences_are_joined_up_to_a_number_of_words(tmp_path: Path, limit: int, texts: list[str]) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps({"tokens": text.split()}) + "\n" for text in ("a b", "c d e", "f")))
    assert [" ".join(words) for words in join(path, limit)] == texts
