"""JSON of TablERT."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanwise import Entity, FormatError, Relation, Sentence
from spanwise.formats import spert, tablert

RECORD = {
    "tokens": ["New", "York", "and", "Oslo"],
    "tags": ["B-Loc", "L-Loc", "O", "U-Loc"],
    "relations": [{"type": "far_from", "head": 1, "tail": 0}],
    "orig_id": 7,
}


def test_relations_refer_to_entities_in_text_order(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(tablert, [RECORD])
    assert sentence.id == "7"
    assert sentence.entities == (Entity("Loc", ((0, 2),)), Entity("Loc", ((3, 4),)))
    assert sentence.relations == (Relation("far_from", 1, 0),)
    text, written = workbench.write(tablert, [sentence])
    assert json.loads(text) == [RECORD]
    assert (ledger.lost, written.lost, ledger.notes) == (0, 0, {})


def test_entities_are_renumbered_in_text_order(workbench: Any) -> None:
    entities = (Entity("B", ((2, 3),)), Entity("A", ((0, 2),)), Entity("A", ((0, 2),)))
    sentence = Sentence("s", ("a", "b", "c"), entities, (Relation("r", 0, 1), Relation("q", 2, 0)))
    (read,), ledger = workbench.round_trip(tablert, [sentence])
    assert read.entities == (entities[1], entities[0])
    assert read.relations == (Relation("r", 1, 0), Relation("q", 0, 1))
    assert ledger.lost == 0
    assert ledger.notes == {"duplicate entities, merged": 1}


def test_overlaps_are_lost(workbench: Any) -> None:
    entities = (Entity("A", ((1, 2),)), Entity("B", ((0, 3),)), Entity("C", ((2, 4),)), Entity("D", ((0, 1), (3, 4))))
    sentence = Sentence("s", ("a", "b", "c", "d"), entities, (Relation("r", 1, 0),))
    (read,), ledger = workbench.round_trip(tablert, [sentence])
    assert read.entities == (entities[1],)
    assert ledger.losses == {
        ("entities", "discontinuous"): 1,
        ("entities", "overlapping another"): 2,
        ("relations", "with a dropped entity"): 1,
    }


def test_repairs_are_noted(workbench: Any) -> None:
    (sentence,), ledger = workbench.load(tablert, [RECORD | {"tags": ["O", "L-Loc", "O", "I-Loc"]}])
    assert [e.range for e in sentence.entities] == [(1, 2), (3, 4)]
    assert list(ledger.notes.values()) == [2]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tags": ["O"]}, "1 tag for 4 tokens"),
        ({"tags": ["O", "O", "O", "Loc"]}, "'Loc' is not a tag"),
        ({"relations": [{"type": "r", "head": 0, "tail": 2}]}, "relation 'r' refers to entity 2, but the sentence has 2"),
    ],
)
def test_errors_name_the_line(workbench: Any, change: dict[str, Any], problem: str) -> None:
    with pytest.raises(FormatError) as error:
        workbench.load(tablert, [RECORD, RECORD | change])
    assert str(error.value).startswith(f"{workbench.folder / 'data.json'}:3: {problem}")


def test_real_sample_equals_the_spert_sample(workbench: Any, shared_data: Path) -> None:
    folder = shared_data / "conll04/raw_sample"
    sentences, ledger = workbench.load(tablert, folder / "conll04_dev.tablert_bilou.sample.json")
    raw = json.loads((folder / "conll04_dev.tablert_bilou.sample.json").read_text(encoding="utf-8"))
    assert sum(len(s.entities) for s in sentences) == sum(tag[0] in "BU" for record in raw for tag in record["tags"])
    expected, _ = workbench.load(spert, folder / "conll04_dev.sample.json")
    assert len(sentences) == len(raw) == 60
    assert sentences == expected[:60]
    reread, written = workbench.round_trip(tablert, sentences)
    assert reread == sentences
    assert (ledger.lost, written.lost, ledger.notes) == (0, 0, {})
    assert json.loads((workbench.folder / "out.json").read_text(encoding="utf-8")) == raw
