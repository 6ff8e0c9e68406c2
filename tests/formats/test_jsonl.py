"""The interchange format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, FormatError, Link, Relation, Sentence, Span, SpanwiseError
from spanwise.core.errors import UnknownFormatError
from spanwise.formats import Ledger, detect
from spanwise.formats.jsonl import read, write


def from_records(folder: Path, *records: Any, **options: Any) -> list[Sentence]:
    path = folder / "data.jsonl"
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")
    return list(read(path, Ledger(), **options))


def test_everything_in_a_sentence_is_read_back(tmp_path: Path) -> None:
    sentence = Sentence(
        "s1",
        ("Kidney", "and", "liver", "failure", "."),
        (
            Entity("Disease", ((0, 1), (3, 4)), score=0.25, extra={"reviewed": True}),
            Entity("Anatomy", ((0, 1),)),
            Entity("Disease", ((2, 4),)),
        ),
        (Relation("part", 1, 0, score=0.5, extra={"by": "rule"}),),
        (Link("same", 0, 7, 2, extra={"weight": 2}),),
        text="Kidney and liver failure.\n",
        pos=("N", "C", "N", "N", "."),
        document="doc",
        position=3,
        start=120,
        extra={"source": ["x", {"y": 1}]},
    )
    write([sentence], tmp_path / "out.jsonl", Ledger())
    (back,) = read(tmp_path / "out.jsonl", Ledger())
    assert back == sentence
    assert back.entities[0].score == 0.25
    assert back.entities[0].extra == {"reviewed": True}
    assert back.relations[0].score == 0.5
    assert back.relations[0].extra == {"by": "rule"}
    assert back.links[0].extra == {"weight": 2}
    assert back.extra == sentence.extra


def test_only_tokens_are_needed(tmp_path: Path) -> None:
    first, second = from_records(tmp_path, {"tokens": ["a", "b"]}, {"tokens": [], "entities": None, "id": 7})
    assert first == Sentence("data-0", ("a", "b"))
    assert second == Sentence("7", ())


def test_blank_lines_and_a_byte_order_mark_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"tokens": ["a"]}\r\n\r\n  \n{"tokens": ["b"]}')
    assert [s.words for s in read(path, Ledger())] == [("a",), ("b",)]


def test_word_starts_are_written_if_a_search_would_find_others(tmp_path: Path) -> None:
    sentence = Sentence("s", ("a", "b"), text="xa a b", starts=(3, 5))
    write([sentence], tmp_path / "out.jsonl", Ledger())
    assert list(read(tmp_path / "out.jsonl", Ledger())) == [sentence]


def test_inclusive_ends_can_be_read(tmp_path: Path) -> None:
    record = {"tokens": ["a", "b"], "entities": [{"type": "X", "spans": [[0, 1]]}, {"type": "Y", "spans": [[1, 1]]}]}
    (sentence,) = from_records(tmp_path, record, ends="inclusive")
    assert [e.fragments for e in sentence.entities] == [(Span(0, 2),), (Span(1, 2),)]


def test_arrays(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text('[{"tokens": ["a"]}, {"tokens": ["b"], "entities": [{"type": "X", "spans": [[0, 1]]}]}]', encoding="utf-8")
    assert detect(path).name == "jsonl"
    assert [(s.id, len(s.entities)) for s in read(path, Ledger())] == [("all-0", 0), ("all-1", 1)]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not JSON"),
        ('{"tokens": ["\\ud800"]}', "not JSON"),
        ("[" * 5000, "not JSON"),
        ("3", "the record: "),
        ('{"text": "a"}', "tokens: field required"),
        ('{"tokens": "a b"}', "tokens: input should be a valid list, found 'a b'"),
        ('{"tokens": ["a"], "entities": [{"type": "X", "start": 0, "end": 1}]}', "entities.0.spans: field required"),
        ('{"tokens": ["a"], "entities": [{"type": "X", "spans": [[0, 2]]}]}', "ends at word 2, but the sentence has 1 word"),
        ('{"tokens": ["a"], "entities": [{"type": "X", "spans": [[0, 0]]}]}', "if the ends are inclusive"),
        ('{"tokens": ["a"], "relations": [{"type": "R", "head": 0, "tail": 0}]}', "refers to entity 0, but the sentence has 0"),
        ('{"tokens": ["a"], "text": "b"}', "is not in the text"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"tokens": ["fine"]}\n\n' + line + "\n", encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        list(read(path, Ledger()))
    assert str(caught.value).startswith(f"{path}:3: ")
    assert complaint in str(caught.value)


def test_errors_for_invalid_utf8_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"tokens": ["fine"]}\n{"tokens": ["\xff"]}\n')
    with pytest.raises(FormatError, match=r"bad.jsonl:2: not UTF-8 at byte 14"):
        list(read(path, Ledger()))


@pytest.mark.parametrize(
    ("entity", "problem"),
    [
        ({"type": "X", "spans": [["0", 1]]}, "entities.0.spans.0.0: input should be a valid integer, found '0'"),
        ({"type": "X", "spans": [[0, True]]}, "entities.0.spans.0.1: input should be a valid integer, found True"),
        ({"type": "X", "spans": [[0, 1]], "score": "0.5"}, "entities.0.score: input should be a valid number, found '0.5'"),
        ({"type": "X", "spans": [[0, 1]], "score": 1e999}, "not JSON"),
        ({"type": "X", "spans": [[0, 1]], "score": float("nan")}, "not JSON"),
    ],
)
def test_numbers_are_not_converted(tmp_path: Path, entity: dict[str, Any], problem: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"tokens": ["a"], "entities": [entity]}) + "\n")
    with pytest.raises(FormatError) as caught:
        list(read(path, Ledger()))
    assert str(caught.value).startswith(f"{path}:1: {problem}")


def test_an_infinite_score_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"tokens": ["a"], "entities": [{"type": "X", "spans": [[0, 1]], "score": 1e999}]}')
    with pytest.raises(FormatError, match=r"x.jsonl:1: an entity's score must be a finite number, not inf"):
        list(read(path, Ledger()))


def test_values_that_are_not_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="cannot be written as JSON"):
        write([Sentence("s", ("a",), extra={"weight": float("nan")})], tmp_path / "x.jsonl", Ledger())


def test_ids_may_be_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": 7, "document": 3, "tokens": ["a"]}\n')
    (sentence,) = read(path, Ledger())
    assert (sentence.id, sentence.document) == ("7", "3")


def test_words_that_are_spaces_keep_their_offsets(tmp_path: Path) -> None:
    sentence = Sentence("s", ("Oslo", " "), text="Oslo  ", starts=(0, 4))  # in the joined words, the second would start at 5
    write([sentence], tmp_path / "out.jsonl", Ledger())
    assert list(read(tmp_path / "out.jsonl", Ledger())) == [sentence]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bio", ["O", "B-LOC"]),
        ("mentions", [{"start": 1, "end": 2, "label": "LOC"}]),
    ],
)
def test_records_with_other_annotations_are_another_format(tmp_path: Path, key: str, value: Any) -> None:
    """Their entities would be dropped: the interchange format has them in ``entities``."""
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps({"tokens": ["in", "Oslo"], key: value}) + "\n")
    with pytest.raises(UnknownFormatError, match=f"cannot detect the format; .* the keys 'tokens', '{key}'"):
        detect(path)


def test_records_with_other_lists_of_strings_are_the_interchange_format(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps({"tokens": ["in", "Oslo"], "lemmas": ["in", "Oslo"], "flags": ["O", "O"]}) + "\n")
    assert detect(path).name == "jsonl"
