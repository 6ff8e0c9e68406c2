"""JSON of SpERT."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, FormatError, Link, Relation, Sentence
from spanwise.formats import detect, read, spert

RECORD = {
    "tokens": ["The", "University", "of", "Oslo", "in", "Norway"],
    "entities": [
        {"type": "Org", "start": 1, "end": 4, "certain": True},
        {"type": "Loc", "start": 3, "end": 4, "score": 0.5},
        {"type": "Loc", "start": 3, "end": 6},
    ],
    "relations": [{"type": "in", "head": 0, "tail": 1, "note": "plain"}],
    "orig_id": 83,
    "source": "map",
}


def test_nested_and_crossing_entities_and_relations(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(spert, [RECORD])
    assert sentence == Sentence(
        "83",
        ("The", "University", "of", "Oslo", "in", "Norway"),
        (Entity("Org", ((1, 4),)), Entity("Loc", ((3, 4),)), Entity("Loc", ((3, 6),))),
        (Relation("in", 0, 1),),
    )
    assert sentence.extra == {"source": "map"}
    assert (sentence.entities[0].extra, sentence.entities[1].score) == ({"certain": True}, 0.5)
    assert (ledger.lost, ledger.notes) == (0, {})


def test_written_data_equals_the_original(workbench: Any) -> None:
    sentences, _ = workbench.load(spert, [RECORD])
    text, ledger = workbench.write(spert, sentences)
    assert json.loads(text) == [RECORD]
    assert ledger.lost == 0


def test_lines_and_missing_ids(workbench: Any) -> None:
    line = json.dumps({"tokens": ["Oslo"], "entities": []})
    sentences, _ = workbench.load(spert, f"{line}\n\n{line}\n")
    assert [s.id for s in sentences] == ["data-0", "data-1"]


def test_a_file_without_entities_is_detected_by_its_ids(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    bare = {"tokens": ["Oslo"], "entities": [], "relations": []}
    path.write_text(json.dumps([{**bare, "orig_id": 5}, {**bare, "orig_id": 6}]))
    assert detect(path).name == "spert"
    assert [sentence.id for sentence in read(path)] == ["5", "6"]
    for others in (
        [{**bare, "orig_id": 5, "id": "a"}],
        [{**bare, "orig_id": 5}, {"tokens": ["Oslo"], "entities": [{"type": "Loc", "spans": [[0, 1]]}], "orig_id": 6}],
    ):  # the interchange format with an extra key
        path.write_text(json.dumps(others))
        assert detect(path).name == "jsonl"


def test_discontinuous_entities_and_links_are_lost(workbench: Any) -> None:
    sentence = Sentence(
        "s1",
        ("kidney", "and", "liver", "failure"),
        (Entity("D", ((0, 1), (3, 4))), Entity("D", ((2, 4),)), Entity("A", ((0, 1),))),
        (Relation("r", 0, 1), Relation("r", 2, 1)),
        (Link("l", 1, 4, 0),),
        document="d",
        position=3,
    )
    (read,), ledger = workbench.round_trip(spert, [sentence])
    assert read.entities == (Entity("D", ((2, 4),)), Entity("A", ((0, 1),)))
    assert read.relations == (Relation("r", 1, 0),)
    assert ledger.losses == {
        ("entities", "discontinuous"): 1,
        ("relations", "with a dropped entity"): 1,
        ("relations", "across sentences"): 1,
    }


def test_an_extra_key_of_the_format_itself_is_noted(workbench: Any) -> None:
    (read,), ledger = workbench.round_trip(spert, [Sentence("s1", ("Oslo",), extra={"tokens": 1, "source": "map"})])
    assert (read.words, read.extra) == (("Oslo",), {"source": "map"})
    assert (ledger.lost, dict(ledger.notes)) == (0, {"keys dropped: 'tokens' has another meaning in this format": 1})


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"tokens": ["a"]}, "entities: field required"),
        (
            {"tokens": ["a"], "entities": [{"type": "X", "start": 0, "end": 2}]},
            "entity 'X' ends at word 2, but the sentence has 1 word",
        ),
        ({"tokens": ["a"], "entities": [{"type": "", "start": 0, "end": 1}]}, "an entity's type must be a non-empty string"),
        (
            {"tokens": ["a"], "entities": [], "relations": [{"type": "r", "head": 0, "tail": 0}]},
            "relation 'r' refers to entity 0",
        ),
    ],
)
def test_errors_name_the_line(workbench: Any, record: dict[str, Any], problem: str) -> None:
    good = {"tokens": ["a"], "entities": []}
    with pytest.raises(FormatError) as error:
        workbench.load(spert, [good, record])
    assert str(error.value).startswith(f"{workbench.folder / 'data.json'}:3: {problem}")


@pytest.mark.parametrize(
    ("raw", "split", "prefix"),
    [
        ("conll04/raw_sample/conll04_dev.sample.json", "conll04/dev.jsonl", "conll04-"),
        ("ade/raw_sample/ade_split_0_test.sample.json", "ade/test.jsonl", "ade-"),
    ],
)
def test_real_samples(workbench: Any, corpus: Any, shared_data: Path, raw: str, split: str, prefix: str) -> None:
    sentences, ledger = workbench.load(spert, shared_data / raw)
    text = (shared_data / raw).read_text(encoding="utf-8")
    assert len(sentences) == text.count('"orig_id":')
    assert sum(len(s.entities) for s in sentences) == text.count('"start":')
    assert sum(len(s.relations) for s in sentences) == text.count('"head":')
    for sentence, record in zip(sentences, corpus(shared_data / split), strict=False):
        assert (prefix + sentence.id, list(sentence.words)) == (record["id"], record["tokens"])
        assert [(e.type, [list(e.range)]) for e in sentence.entities] == [(e["type"], e["spans"]) for e in record["entities"]]
        assert [(r.type, r.head, r.tail) for r in sentence.relations] == [
            (r["type"], r["head"], r["tail"]) for r in record.get("relations", [])
        ]
    reread, written = workbench.round_trip(spert, sentences)
    assert reread == sentences
    assert (ledger.lost, written.lost) == (0, 0)
    assert json.loads((workbench.folder / "out.json").read_text(encoding="utf-8")) == json.loads(text)
