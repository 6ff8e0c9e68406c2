"""Reading as if nobody had annotated: a model must not be told where entities begin and end."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanwise import Entity, Sentence, read, write
from spanwise.formats import formats


@pytest.fixture
def brat(tmp_path: Path) -> Path:
    (tmp_path / "d.txt").write_text("Anti-IL2R helps. Yahoo! Inc. grew.\n", encoding="utf-8")
    (tmp_path / "d.ann").write_text("T1\tGene 5 8\tIL2\nT2\tOrg 17 28\tYahoo! Inc.\n", encoding="utf-8")
    return tmp_path / "d.ann"


def test_words_and_sentences_are_not_cut_along_entities(brat: Path) -> None:
    annotated, bare = list(read(brat)), list(read(brat, annotated=False))
    assert [s.words for s in annotated] == [
        ("Anti", "-", "IL2", "R", "helps", "."), ("Yahoo", "!", "Inc", ".", "grew", "."),
    ]  # fmt: skip
    assert [s.words for s in bare] == [
        ("Anti", "-", "IL2R", "helps", "."), ("Yahoo", "!"), ("Inc", ".", "grew", "."),
    ]  # fmt: skip
    assert not any(s.entities for s in bare)
    assert "".join(s.text for s in annotated) == "".join(s.text for s in bare)


def test_words_that_a_file_gives_stay(tmp_path: Path) -> None:
    sentence = Sentence(
        "s", ("Anti", "-", "IL2", "R"), (Entity("Gene", ((2, 3),)),), text="Anti-IL2R", document="d", position=0
    )
    write([sentence], tmp_path / "x.jsonl")
    (bare,) = read(tmp_path / "x.jsonl", annotated=False)
    assert (bare.id, bare.words, bare.entities) == ("s", sentence.words, ())


def test_the_formats_without_words_are_known() -> None:
    assert {name for name, format in formats().items() if not format.has_words} == {
        "ade_rel", "brat", "doccano", "label_studio", "pubtator",
    }  # fmt: skip
