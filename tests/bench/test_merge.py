"""``bench/papers/merge.py``: sentences of a document become one, and no entity is lost or moved to other words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "papers"))

from merge import Record, complete, merge


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


def entity_texts(records: list[Record]) -> list[str]:
    return [
        " ".join(record["tokens"][start:end])
        for record in records
        for entity in record["entities"]
        for start, end in entity["spans"]
    ]
