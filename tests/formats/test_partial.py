"""Marks of partial annotation: kept by jsonl, counted as lost by all other formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spanwise import Entity, Sentence, SpanwiseError
from spanwise.formats.registry import FORMATS, read, write

MARKS = (None, (), ((0, 2),), ("Place",))
SENTENCES = [Sentence(f"s{n}", ("in", "Oslo", "."), (Entity("Place", ((1, 2),)),), annotated=m) for n, m in enumerate(MARKS)]


def test_jsonl_keeps_marks(tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    write(SENTENCES, file)
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [record.get("annotated", "none") for record in records] == ["none", [], [[0, 2]], ["Place"]]
    assert [sentence.annotated for sentence in read(file)] == list(MARKS)


def test_inclusive_ends(tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    file.write_text('{"tokens": ["in", "Oslo"], "annotated": [[0, 1]]}\n')
    (sentence,) = read(file, "jsonl:ends=inclusive")
    assert sentence.annotated == ((0, 2),)


@pytest.mark.parametrize("marks", ["[[0, 3]]", '[[0, "x"]]', '{"a": 1}', '[["a"]]'])
def test_wrong_marks_name_the_line(marks: str, tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    file.write_text('{"tokens": ["ok"]}\n{"tokens": ["in", "Oslo"], "annotated": ' + marks + "}\n")
    with pytest.raises(SpanwiseError, match=r"data\.jsonl:2: .*annotated"):
        list(read(file))


def test_other_formats_count_marks_as_lost(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match=r"conll would drop 3 partial annotations \(not supported by the format\)"):
        write(SENTENCES, tmp_path / "data.conll", "conll")
    ledger = write(SENTENCES, tmp_path / "data.conll", "conll", lossy=True)
    assert ledger.lost == 3
    assert [name for name in FORMATS if "partial" in FORMATS.load(name).supports] == ["jsonl"]
