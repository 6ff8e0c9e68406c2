"""The whole description, its JSON, and its memory use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from weakref import WeakSet

from spanwise.core.types import Corpus, Entity, Relation, Sentence
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


def test_description_of_a_small_corpus() -> None:
    description = describe({"train": TRAIN, "test": TEST}).to_json()
    assert json.loads(json.dumps(description)) == description
    assert list(description) == ["splits", "shared", "also_in_train", "conflicts", "labels", "issues"]
    train, test = description["splits"]["train"], description["splits"]["test"]
    assert (train["sentences"], train["words"], train["entities"], train["nested"]) == (3, 11, 4, 1)
    assert (train["relations"], train["relation_types"], train["duplicate_sentences"]) == (1, {"in": 1}, 1)
    assert (test["sentences"], test["entities"], test["types"]) == (2, 2, {"River": 1, "city": 1})
    assert description["shared"] == {"train&test": 1}
    assert description["also_in_train"] == {"test": 1}
    assert description["conflicts"]["across"] == {"train&test": 1}
    assert description["labels"] == {
        "entities": {
            "unseen_in_train": {"test": ["River", "city"]},
            "missing": {"train": ["River", "city"], "test": ["City", "Port"]},
        },
        "relations": {"unseen_in_train": {}, "missing": {}},
    }
    assert {item["kind"] for item in description["issues"]} == {
        "entity types that look alike",
        "entity types seen once",
        "relation types seen once",
    }


def test_oov_density_counts_tokens() -> None:
    # Of the ten words of test, Bergen (twice), the comma and "old" are not in train.
    description = describe({"test": TEST, "train": TRAIN})
    assert description.splits["test"].oov_density == 4 / 10
    assert description.splits["train"].oov_density is None


def test_oov_density_needs_a_training_split_and_words() -> None:
    assert describe({"dev": TRAIN, "test": TEST}).splits["test"].oov_density is None
    assert describe({"train": TRAIN, "test": [Sentence("e", ())]}).splits["test"].oov_density is None
    assert describe({"train": [], "test": TEST}).splits["test"].oov_density == 1.0


def test_empty_sentences_are_not_duplicates() -> None:
    description = describe({"train": [Sentence("a", ()), Sentence("b", ())], "test": [Sentence("c", ())]})
    assert description.splits["train"].duplicate_sentences == 0
    assert description.shared == {"train&test": 0}
    assert [(item.kind, item.split, item.count) for item in description.issues] == [
        ("empty sentences", "train", 2),
        ("empty sentences", "test", 1),
    ]


def test_a_corpus_without_splits() -> None:
    assert describe({}).to_json() == {
        "splits": {},
        "shared": {},
        "also_in_train": {},
        "conflicts": {"sequences": 0, "within": {}, "across": {}, "examples": []},
        "labels": {kind: {"unseen_in_train": {}, "missing": {}} for kind in ("entities", "relations")},
        "issues": [],
    }


def test_repeated_sentences_do_not_count_for_boundaries() -> None:
    late = sentence("s", "near Oslo , and Bergen , too", ("City", 1, 3), ("City", 4, 6))
    assert "ends too late" not in {item.kind for item in describe({"train": [late] * 300}).issues}
    many = [sentence("s", f"near Oslo , and Bergen , number {n}", ("City", 1, 3), ("City", 4, 6)) for n in range(300)]
    assert "ends too late" in {item.kind for item in describe({"train": many}).issues}


class WeakSentence(Sentence):
    """A sentence that supports weak references."""


def test_sentences_are_not_kept_in_memory() -> None:
    alive: WeakSet[WeakSentence] = WeakSet()
    max_alive = 0

    def stream() -> Iterator[Sentence]:
        nonlocal max_alive
        for index in range(200):
            sentence = WeakSentence(f"s{index}", ("in", f"Oslo{index}", ","), (Entity("City", ((1, 3),)),))
            alive.add(sentence)
            max_alive = max(max_alive, len(alive))
            yield sentence

    description = describe({"train": stream(), "test": stream()})
    assert (description.splits["train"].sentences, description.splits["test"].sentences) == (200, 200)
    assert max_alive <= 2


def test_a_corpus_can_be_described() -> None:
    corpus = Corpus({"train": (Sentence("a", ("in", "Oslo"), (Entity("Place", ((1, 2),)),)),), "dev": ()})
    assert (dict(corpus), len(corpus), "dev" in corpus, "test" in corpus) == (corpus.splits, 2, True, False)
    assert describe(corpus).splits["train"].sentences == 1
