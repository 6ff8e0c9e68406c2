"""JSON lines of doccano."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spanwise import Entity, Link, Relation, Sentence, Span
from spanwise.core.errors import FormatError
from spanwise.formats import Ledger, detect, doccano
from spanwise.formats.shared.sample import Sample

TEXT = "Port of Oslo. Zinc and lead arrive."
ENTITIES = [
    {"id": 11, "label": "Org", "start_offset": 0, "end_offset": 12},
    {"id": 12, "label": "Place", "start_offset": 8, "end_offset": 12},
    {"id": 13, "label": "Metal", "start_offset": 14, "end_offset": 18},
]


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(("text", "label"), [("text", "label"), ("text", "labels"), ("data", "label")])
def test_labels(workbench: Any, text: str, label: str) -> None:
    record = {"id": 5, text: TEXT, label: [[0, 12, "Org"], [8, 12, "Place"]], "Comments": [], "meta": {"page": 1}}
    (first, second), ledger = workbench.load(doccano, lines(record))
    assert first.entities == (Entity("Org", (Span(0, 3),)), Entity("Place", (Span(2, 3),)))
    assert (first.id, second.id, first.document) == ("5-0", "5-1", "5")
    assert first.extra == {"Comments": [], "meta": {"page": 1}}
    assert not ledger.lost


def test_entities_and_relations(workbench: Any) -> None:
    relations = [
        {"id": 1, "from_id": 11, "to_id": 12, "type": "in"},
        {"id": 2, "from_id": 13, "to_id": 11, "type": "reaches"},
    ]
    record = {"id": 5, "text": TEXT, "entities": ENTITIES, "relations": relations}
    (first, second), _ = workbench.load(doccano, lines(record))
    assert first.relations == (Relation("in", 0, 1),)
    assert second.links == (Link("reaches", 0, 0, 0),)


def test_arrays_and_default_ids(workbench: Any) -> None:
    sentences, _ = workbench.load(doccano, [{"text": "Oslo", "label": [[0, 4, "Place"]]}, {"text": "Bergen", "label": None}])
    assert [(s.id, len(s.entities)) for s in sentences] == [("data-0", 1), ("data-1", 0)]


def test_written(workbench: Any) -> None:
    record = {
        "id": 5,
        "text": TEXT,
        "entities": ENTITIES,
        "relations": [{"from_id": 13, "to_id": 11, "type": "reaches"}],
        "meta": 1,
    }
    record["entities"][1]["user"] = 4
    record["entities"][2]["score"] = 0.5
    sentences, _ = workbench.load(doccano, lines(record))
    text, ledger = workbench.write(doccano, sentences)
    assert not ledger.lost
    assert json.loads(text) == {
        "id": 5,
        "text": TEXT,
        "entities": [
            {"id": 1, "label": "Org", "start_offset": 0, "end_offset": 12},
            {"id": 2, "label": "Place", "start_offset": 8, "end_offset": 12, "user": 4},
            {"id": 3, "label": "Metal", "start_offset": 14, "end_offset": 18, "score": 0.5},
        ],
        "relations": [{"id": 4, "from_id": 3, "to_id": 1, "type": "reaches"}],
        "meta": 1,
    }


def test_ids_are_unique_in_the_file(workbench: Any) -> None:
    sentence = Sentence("a", ("Oslo",), (Entity("Place", (Span(0, 1),)),))
    text, _ = workbench.write(doccano, [sentence, sentence])
    assert [json.loads(line)["entities"][0]["id"] for line in text.splitlines()] == [1, 2]


def test_written_as_labels(workbench: Any) -> None:
    entities = Entity("Place", (Span(0, 1),), 0.5), Entity("X", (Span(0, 1), Span(2, 3)))
    sentence = Sentence("a", ("Oslo", "or", "Bergen"), entities, (Relation("r", 0, 0),))
    ledger = Ledger()
    doccano.write([sentence], workbench.folder / "out.jsonl", ledger, form="labels")
    assert json.loads((workbench.folder / "out.jsonl").read_text()) == {
        "id": "a",
        "text": "Oslo or Bergen",
        "label": [[0, 4, "Place"]],
    }
    assert dict(ledger.losses) == {
        ("entities", "discontinuous"): 1,
        ("relations", "not supported by form=labels"): 1,
    }


WIDE = "🌊 Oslo"


def test_numbers_as_labels_are_refused(workbench: Any) -> None:
    """The export without label texts of doccano before 1.4."""
    items = [{"label": 2, "start_offset": 0, "end_offset": 4, "user": 1}]
    path = workbench.file(lines({"id": 1, "text": "Oslo", "annotations": items}), "old.jsonl")
    assert detect(path).name == "doccano"
    with pytest.raises(FormatError, match=r"old.jsonl:1: the labels are numbers; export the data with text labels$"):
        list(doccano.read(path, Ledger()))
    assert [s.words for s in doccano.read(path, Ledger(), with_annotations=False)] == [("Oslo",)]


def test_negative_utf16_offsets_are_refused(workbench: Any) -> None:
    path = workbench.file(lines({"text": "🌊 Oslo", "label": [[-3, 7, "Place"]]}))
    with pytest.raises(FormatError, match=r"data.json:1: Place \[-3, 6\] is outside the text of 6 characters"):
        list(doccano.read(path, Ledger(), offsets="utf16"))


def test_utf16_offsets(workbench: Any) -> None:
    path = workbench.file(lines({"text": WIDE + "!", "label": [[3, 7, "Place"]]}))
    (sentence,) = doccano.read(path, Ledger(), offsets="utf16")
    assert sentence.text_of(sentence.entities[0]) == "Oslo"
    ledger = Ledger()
    (sentence,) = doccano.read(path, ledger)
    assert sentence.text_of(sentence.entities[0]) == "slo!"
    assert [note for note in ledger.notes if "use doccano:offsets=utf16" in note]
    ledger = Ledger()
    (sentence,) = doccano.read(path, ledger, offsets="characters")
    assert sentence.text_of(sentence.entities[0]) == "slo!"
    assert not [note for note in ledger.notes if "utf16" in note]
    path = workbench.file(lines({"text": WIDE, "label": [[3, 7, "Place"]]}))
    with pytest.raises(FormatError, match=r"data.json:1: .* if offsets count UTF-16 units, use doccano:offsets=utf16"):
        list(doccano.read(path, Ledger()))


@pytest.mark.parametrize("form", ["entities", "labels"])
def test_utf16_offsets_written(workbench: Any, form: str) -> None:
    sentence = Sentence("a", ("🌊", "Oslo"), (Entity("Place", (Span(1, 2),)),))
    path = workbench.folder / "out.jsonl"
    doccano.write([sentence], path, Ledger(), form=form, offsets="utf16")
    assert ("3, 7" if form == "labels" else '"start_offset": 3, "end_offset": 7') in path.read_text()
    (reread,) = doccano.read(path, Ledger(), offsets="utf16")
    assert reread.entities == sentence.entities


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"text": "Oslo", "label": [[0, 9, "Place"]]}, r"Place \[0, 9\] is outside the text of 4 characters"),
        ({"text": "Oslo", "label": [[0, 4, ""]]}, "an entity's type must be a non-empty string"),
        ({"text": "Oslo", "label": ["positive"]}, "label.0: input should be a valid tuple, found 'positive'"),
        ({"text": "Oslo", "label": [[0, 4]]}, "label.0.2: field required"),
        ({"label": []}, "text: field required"),
        ({"text": "Oslo", "entities": [ENTITIES[0] | {"end_offset": 4}] * 2}, "duplicate entity id '11'"),
        (
            {"text": "Oslo", "entities": [], "relations": [{"from_id": 1, "to_id": 2, "type": "r"}]},
            "relation 'r' refers to the unknown entity '1'",
        ),
    ],
)
def test_invalid_records(workbench: Any, record: dict[str, Any], problem: str) -> None:
    path = workbench.file(lines({"text": "fine", "label": []}, record))
    with pytest.raises(FormatError, match=f"data.json:2: {problem}"):
        list(doccano.read(path, Ledger()))


def test_a_text_without_words_is_noted(workbench: Any) -> None:
    sentences, ledger = workbench.load(doccano, lines({"text": " \n", "label": []}, {"text": " ", "label": [[0, 1, "X"]]}))
    assert sentences == []
    assert dict(ledger.notes) == {"documents without words, skipped": 2}
    assert dict(ledger.losses) == {("entities", "that are only whitespace"): 1}


@pytest.mark.parametrize(
    ("record", "is_doccano"),
    [
        ({"id": 1, "text": "Oslo", "label": [[0, 4, "Place"]]}, True),
        ({"id": 1, "data": "Oslo", "label": []}, True),
        ({"id": 1, "text": "Oslo", "entities": ENTITIES, "relations": []}, True),
        ({"id": 1, "text": "Oslo", "label": ["positive"]}, False),
        ({"text": "Oslo", "label": {"place": {"Oslo": [[0, 3]]}}}, False),
        ({"text": "Oslo", "entities": [{"start_idx": 0, "end_idx": 3, "type": "place", "entity": "Oslo"}]}, False),
        ({"id": 1, "text": "Oslo", "label": [{"start": 0, "end": 4, "text": "Oslo", "labels": ["Place"]}]}, False),
    ],
)
def test_detection(workbench: Any, record: dict[str, Any], is_doccano: bool) -> None:
    assert doccano.sniff(Sample(workbench.file(lines(record)))) is is_doccano
