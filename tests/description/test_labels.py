"""Differences between labels of splits, and types that look alike."""

from __future__ import annotations

import pytest

from spanwise.core.types import Entity, Link, Relation, Sentence
from spanwise.description.describe import describe
from spanwise.description.findings import findings
from spanwise.description.labels import LabelDifferences, TypeCounts, compare_labels, look_alikes


def test_types_that_a_split_lacks() -> None:
    result = compare_labels({"train": {"A": 5, "B": 1}, "dev": {"A": 1, "C": 2}, "test": {"A": 1, "B": 1, "D": 9, "C": 1}})
    assert result.unseen_in_train == {"dev": ["C"], "test": ["D", "C"]}
    assert result.missing == {"train": ["D", "C"], "dev": ["D", "B"]}
    assert result.to_json() == {"unseen_in_train": result.unseen_in_train, "missing": result.missing}


def test_equal_splits_have_no_differences() -> None:
    assert compare_labels({"train": {"A": 1}, "dev": {"A": 3}}) == LabelDifferences({}, {})
    assert compare_labels({}) == LabelDifferences({}, {})


def test_an_unlabelled_split_lacks_no_types() -> None:
    assert compare_labels({"train": {"A": 1}, "test": {}}) == LabelDifferences({}, {})
    assert compare_labels({"train": {}, "test": {"A": 1}}) == LabelDifferences({}, {})


def test_without_train_only_missing_types_are_listed() -> None:
    assert compare_labels({"one": {"A": 1}, "two": {"B": 1}}) == LabelDifferences({}, {"one": ["B"], "two": ["A"]})


@pytest.mark.parametrize(
    "names",
    [
        ("PER", "Per"),
        ("cell_line", "cell line"),
        ("cell-line", "CellLine"),
        (" LOC", "LOC"),
        ("a.b", "a:b"),
        ("Straße", "STRASSE"),
    ],
)
def test_types_that_look_alike(names: tuple[str, str]) -> None:
    assert look_alikes([*names, "other"]) == [sorted(names)]


def test_types_that_differ_in_letters_do_not_look_alike() -> None:
    assert look_alikes(["LOC", "LOCderiv", "LOCpart", "PER.NAM", "PER.NOM", "protein", "proteins"]) == []


def test_annotated_types_without_entities_are_listed() -> None:
    oslo = (Entity("Loc", ((0, 1),)), Entity("Loc", ((1, 2),)))
    sentences = [
        Sentence("s1", ("Oslo", "Bergen"), oslo, annotated=("Lco",)),
        Sentence("s2", ("Oslo", "Bergen"), oslo, annotated=("Loc",)),
        Sentence("s3", ("Oslo", "Bergen"), oslo, annotated=((0, 1),)),
    ]
    messages = [finding.message for finding in findings(describe({"train": sentences}))]
    message = "1 type is listed in \"annotated\", but no entity has it: Lco (did you mean 'Loc'?)"
    assert message in messages
    types = TypeCounts()
    types.add("train", sentences[0])
    (issue,) = types.issues()
    assert issue.message == message
    assert issue.examples == [{"split": "train", "id": "s1", "text": "", "type": "Lco"}]
    types.add("train", sentences[1])
    types.add("train", Sentence("s4", ("Oslo",), annotated=("City",)))
    (issue,) = types.issues()
    assert issue.message == ("2 types are listed in \"annotated\", but no entity has them: City, Lco (did you mean 'Loc'?)")


def test_types_seen_once_are_listed_with_examples() -> None:
    types = TypeCounts()
    often, once = Entity("City", ((0, 1),)), Entity("Ship", ((1, 3),))
    types.add("train", Sentence("s1", ("Oslo", "old", "Fram"), (often, once), relations=(Relation("home", 1, 0),)))
    types.add("dev", Sentence("s2", ("Oslo",), (often,), links=(Link("same", 0, 4, 0),), document="d", position=0))
    types.add("dev", Sentence("s3", ("Oslo",), (often,), links=(Link("same", 0, 5, 0),), document="d", position=1))
    entities, relations = types.issues()
    assert entities.to_json() == {
        "kind": "entity types seen once",
        "split": None,
        "count": 1,
        "message": "1 entity type occurs only once: Ship",
        "examples": [{"split": "train", "id": "s1", "text": "old Fram", "type": "Ship"}],
    }
    assert relations.message == "1 relation type occurs only once: home"
    assert relations.examples == [{"split": "train", "id": "s1", "text": "old Fram", "type": "home"}]


def test_a_type_seen_once_in_each_of_two_splits_is_seen_twice() -> None:
    types = TypeCounts()
    for split in ("train", "dev"):
        types.add(split, Sentence("s", ("Oslo",), (Entity("City", ((0, 1),)),)))
    assert list(types.issues()) == []


def test_look_alikes_across_splits() -> None:
    types = TypeCounts()
    for split, name in (("train", "PER"), ("train", "PER"), ("dev", "Per"), ("dev", "Per")):
        types.add(split, Sentence("s", ("pilot",), (Entity(name, ((0, 1),)),)))
    (result,) = types.issues()
    assert result.message == "the entity types “PER” (2) and “Per” (2) differ only in spelling"
    assert [example["split"] for example in result.examples] == ["train", "dev"]


def test_only_some_of_many_types_seen_once_are_listed() -> None:
    types = TypeCounts()
    for number in range(8):
        types.add("train", Sentence("s", ("x",), (Entity(f"T{number}", ((0, 1),)),)))
    (result,) = types.issues()
    assert result.message == "8 entity types occur only once: T0, T1, T2, T3, T4 and 3 more"
    assert (result.count, len(result.examples)) == (8, 5)
