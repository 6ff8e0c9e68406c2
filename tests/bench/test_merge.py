"""``bench/papers/merge.py``: sentences of a document become one, and no entity is lost or moved to other words."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "papers"))

import merge as program
from merge import Record, complete, merge

from spanwise.core.errors import SpanwiseError


def record(name: str, document: str | None, words: str, *entities: tuple[int, int]) -> Record:
    spans = [{"spans": [list(span)], "type": "X"} for span in entities]
    return {"id": name, "document": document, "tokens": words.split(), "entities": spans}


RECORDS = [
    record("a1", "a", "one two", (0, 1)),
    record("a2", "a", "three four five", (0, 2), (1, 2)),
    record("a3", "a", "six", (0, 1)),
    record("b1", "b", "seven eight", (0, 2)),
]


@pytest.mark.parametrize(
    ("limit", "merged"),
    [
        (100, ["one two three four five six", "seven eight"]),
        (5, ["one two three four five", "six", "seven eight"]),
        (1, ["one two", "three four five", "six", "seven eight"]),  # a sentence is never split
    ],
)
def test_sentences_of_a_document_are_merged_up_to_a_size(limit: int, merged: list[str]) -> None:
    records = list(merge(RECORDS, [len(record["tokens"]) for record in RECORDS], limit))
    assert [" ".join(record["tokens"]) for record in records] == merged
    assert entity_texts(records) == entity_texts(RECORDS)


def test_sentences_without_a_document_stay_alone() -> None:
    records = [record("1", None, "one", (0, 1)), record("2", None, "two")]
    assert [row["id"] for row in merge(records, [1, 1], 100)] == ["1", "2"]


def test_sentences_of_other_splits_are_context_that_is_not_annotated() -> None:
    one, two, three, other = (
        record(f"{document}{position}", document, words, (0, 1)) | {"position": position}
        for document, position, words in [("a", 1, "one two"), ("a", 2, "three"), ("a", 3, "four"), ("c", 1, "five")]
    )
    records = complete([one, three], [two, other])
    assert [row["id"] for row in records] == ["a1", "a2", "a3"]
    (merged,) = merge(records, [2, 1, 1], 100)
    assert merged == {
        "id": "a1",
        "tokens": ["one", "two", "three", "four"],
        "entities": [{"spans": [[0, 1]], "type": "X"}, {"spans": [[3, 4]], "type": "X"}],
        "annotated": [[0, 2], [3, 4]],
    }
    assert [row["id"] for row in merge(records, [2, 1, 1], 1)] == ["a1", "a3"]  # context alone is dropped


def test_sentences_of_several_splits_need_positions() -> None:
    """Without them, the order of the sentences is unknown."""
    one, two, other = record("a1", "a", "one"), record("a2", "a", "two"), record("b1", "b", "three")
    with pytest.raises(SpanwiseError, match="document a is in several splits; expected a position in each of its sentences"):
        complete([one | {"position": 1}, other], [two])
    assert [row["id"] for row in complete([one, other], [])] == ["a1", "b1"]


def run(monkeypatch: pytest.MonkeyPatch, *arguments: Path) -> None:
    """The program with a tokenizer whose subwords are words."""
    monkeypatch.setattr(program, "load_pretrained", lambda name: (None, lambda words, **options: {"input_ids": words}))
    monkeypatch.setattr(sys, "argv", ["merge.py", *map(str, arguments)])
    program.main()


def write(path: Path, *records: Record) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in records), encoding="utf-8")
    return path


def test_only_line_ends_separate_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other characters that end a line of text, such as U+2028, may be part of a word."""
    row = record("1", None, "one") | {"tokens": ["two\u2028three"]}
    path = write(tmp_path / "train.jsonl", row)
    run(monkeypatch, tmp_path, tmp_path / "out")
    (merged,) = map(json.loads, (tmp_path / "out" / path.name).read_text(encoding="utf-8").split("\n")[:-1])
    assert merged["tokens"] == row["tokens"]


@pytest.mark.parametrize("marks", [[], [[0, 1]], ["X"]])
def test_partially_annotated_sentences_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], marks: list[object]
) -> None:
    """A merged sentence would count as annotated completely."""
    write(tmp_path / "train.jsonl", record("1", "a", "one"), record("2", "a", "two") | {"annotated": marks})
    with pytest.raises(SystemExit):
        run(monkeypatch, tmp_path, tmp_path / "out")
    assert "train.jsonl:2: the sentence is annotated partially; expected complete annotations" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_data_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "train.jsonl", record("1", "a", "one"))
    before = path.read_bytes()
    with pytest.raises(SystemExit):
        run(monkeypatch, tmp_path, tmp_path)
    assert "the output would overwrite an input" in capsys.readouterr().err
    assert path.read_bytes() == before


def entity_texts(records: list[Record]) -> list[str]:
    return [
        " ".join(record["tokens"][start:end])
        for record in records
        for entity in record["entities"]
        for start, end in entity["spans"]
    ]
