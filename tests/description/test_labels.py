"""The inventory of labels, and types that look alike."""

from __future__ import annotations

import pytest

from spanwise.core.types import Entity, Link, Relation, Sentence
from spanwise.description.labels import Inventory, Types, inventory, look_alikes


def test_types_that_one_split_has_and_another_has_not() -> None:
    found = inventory({"train": {"A": 5, "B": 1}, "dev": {"A": 1, "C": 2}, "test": {"A": 1, "B": 1, "D": 9, "C": 1}})
    assert found.unseen_in_train == {"dev": ["C"], "test": ["D", "C"]}
    assert found.missing == {"train": ["D", "C"], "dev": ["D", "B"]}
    assert found.to_json() == {"unseen_in_train": found.unseen_in_train, "missing": found.missing}


def test_equal_splits_differ_in_nothing() -> None:
    assert inventory({"train": {"A": 1}, "dev": {"A": 3}}) == Inventory({}, {})
    assert inventory({}) == Inventory({}, {})


def test_an_unlabelled_split_lacks_no_types() -> None:
    assert inventory({"train": {"A": 1}, "test": {}}) == Inventory({}, {})
    assert inventory({"train": {}, "test": {"A": 1}}) == Inventory({}, {})


def test_without_a_training_split_only_differences_are_named() -> None:
    assert inventory({"one": {"A": 1}, "two": {"B": 1}}) == Inventory({}, {"one": ["B"], "two": ["A"]})


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


def test_types_seen_once_are_shown_with_their_place() -> None:
    types = Types()
    often, once = Entity("City", ((0, 1),)), Entity("Ship", ((1, 3),))
    types.add("train", Sentence("s1", ("Oslo", "old", "Fram"), (often, once), relations=(Relation("home", 1, 0),)))
    types.add("dev", Sentence("s2", ("Oslo",), (often,), links=(Link("same", 0, 4, 0),), document="d", position=0))
    types.add("dev", Sentence("s3", ("Oslo",), (often,), links=(Link("same", 0, 5, 0),), document="d", position=1))
    entities, relations = types.found()
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
    types = Types()
    for split in ("train", "dev"):
        types.add(split, Sentence("s", ("Oslo",), (Entity("City", ((0, 1),)),)))
    assert list(types.found()) == []


def test_look_alikes_over_splits_with_their_counts() -> None:
    types = Types()
    for split, name in (("train", "PER"), ("train", "PER"), ("dev", "Per"), ("dev", "Per")):
        types.add(split, Sentence("s", ("pilot",), (Entity(name, ((0, 1),)),)))
    (found,) = types.found()
    assert found.message == "the entity types “PER” (2) and “Per” (2) differ only in how they are written"
    assert [example["split"] for example in found.examples] == ["train", "dev"]


def test_many_types_seen_once_are_counted_and_few_are_named() -> None:
    types = Types()
    for number in range(8):
        types.add("train", Sentence("s", ("x",), (Entity(f"T{number}", ((0, 1),)),)))
    (found,) = types.found()
    assert found.message == "8 entity types occur only once: T0, T1, T2, T3, T4 and 3 more"
    assert (found.count, len(found.examples)) == (8, 5)
