"""The whole description: what it holds, how it is written, and that it keeps no sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from weakref import WeakSet

from spanwise.core.types import Entity, Relation, Sentence
from spanwise.description import describe


def sentence(id: str, text: str, *entities: tuple[str, int, int], relations: tuple[Relation, ...] = ()) -> Sentence:
    return Sentence(id, tuple(text.split()), tuple(Entity(t, ((a, b),)) for t, a, b in entities), relations)


TRAIN = [
    sentence("t1", "the port of Oslo grows", ("Port", 1, 4), ("City", 3, 4), relations=(Relation("in", 0, 1),)),
    sentence("t2", "Oslo is wet", ("City", 0, 1)),
    sentence("t3", "Oslo is wet", ("City", 0, 1)),
]
TEST = [
    sentence("e1", "Oslo is wet"),
    sentence("e2", "Bergen is wet , Bergen is old", ("city", 0, 1), ("River", 4, 5)),
]


def test_everything_together() -> None:
    found = describe({"train": TRAIN, "test": TEST}).to_json()
    assert json.loads(json.dumps(found)) == found
    assert list(found) == ["splits", "shared", "also_in_train", "conflicts", "labels", "suspicious"]
    train, test = found["splits"]["train"], found["splits"]["test"]
    assert (train["sentences"], train["words"], train["entities"], train["nested"]) == (3, 11, 4, 1)
    assert (train["relations"], train["relation_types"], train["duplicate_sentences"]) == (1, {"in": 1}, 1)
    assert (test["sentences"], test["entities"], test["types"]) == (2, 2, {"River": 1, "city": 1})
    assert found["shared"] == {"train&test": 1}
    assert found["also_in_train"] == {"test": 1}
    assert found["conflicts"]["across"] == {"train&test": 1}
    assert found["labels"] == {
        "entities": {
            "unseen_in_train": {"test": ["River", "city"]},
            "missing": {"train": ["River", "city"], "test": ["City", "Port"]},
        },
        "relations": {"unseen_in_train": {}, "missing": {}},
    }
    assert {item["kind"] for item in found["suspicious"]} == {
        "entity types that look alike",
        "entity types seen once",
        "relation types seen once",
    }


def test_oov_density_counts_words_as_often_as_they_occur() -> None:
    # Of the ten words of test, Bergen (twice), the comma and "old" are not in train.
    description = describe({"test": TEST, "train": TRAIN})
    assert description.splits["test"].oov_density == 4 / 10
    assert description.splits["train"].oov_density is None


def test_oov_density_needs_a_training_split_and_words() -> None:
    assert describe({"dev": TRAIN, "test": TEST}).splits["test"].oov_density is None
    assert describe({"train": TRAIN, "test": [Sentence("e", ())]}).splits["test"].oov_density is None
    assert describe({"train": [], "test": TEST}).splits["test"].oov_density == 1.0


def test_empty_sentences_are_not_repetitions() -> None:
    description = describe({"train": [Sentence("a", ()), Sentence("b", ())], "test": [Sentence("c", ())]})
    assert description.splits["train"].duplicate_sentences == 0
    assert description.shared == {"train&test": 0}
    assert [(item.kind, item.split, item.count) for item in description.suspicious] == [
        ("empty sentences", "train", 2),
        ("empty sentences", "test", 1),
    ]


def test_nothing_at_all() -> None:
    assert describe({}).to_json() == {
        "splits": {},
        "shared": {},
        "also_in_train": {},
        "conflicts": {"sequences": 0, "within": {}, "across": {}, "examples": []},
        "labels": {side: {"unseen_in_train": {}, "missing": {}} for side in ("entities", "relations")},
        "suspicious": [],
    }


def test_repeated_sentences_do_not_make_a_smell() -> None:
    """A hundred copies of a sentence are no hundred witnesses."""
    late = sentence("s", "near Oslo , and Bergen , too", ("City", 1, 3), ("City", 4, 6))
    assert "ends too late" not in {item.kind for item in describe({"train": [late] * 300}).suspicious}
    many = [sentence("s", f"near Oslo , and Bergen , number {n}", ("City", 1, 3), ("City", 4, 6)) for n in range(300)]
    assert "ends too late" in {item.kind for item in describe({"train": many}).suspicious}


class Watched(Sentence):
    """A sentence that can be watched from outside."""


def test_sentences_are_read_once_and_none_is_kept() -> None:
    alive: WeakSet[Watched] = WeakSet()
    most = 0

    def stream() -> Iterator[Sentence]:
        nonlocal most
        for number in range(200):
            one = Watched(f"s{number}", ("in", f"Oslo{number}", ","), (Entity("City", ((1, 3),)),))
            alive.add(one)
            most = max(most, len(alive))
            yield one

    description = describe({"train": stream(), "test": stream()})
    assert (description.splits["train"].sentences, description.splits["test"].sentences) == (200, 200)
    assert most <= 2
