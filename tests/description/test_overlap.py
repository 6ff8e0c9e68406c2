"""Sentences that occur again, with the same labels and with others."""

from __future__ import annotations

from spanwise.core.types import Entity, Link, Relation, Sentence
from spanwise.description.overlap import Overlap, digest, label_digest

WORDS = ("Oslo", "and", "Bergen")
OSLO, BERGEN = Entity("City", ((0, 1),)), Entity("City", ((2, 3),))


def filled(**splits: list[Sentence]) -> Overlap:
    overlap = Overlap(list(splits))
    for split, sentences in splits.items():
        for sentence in sentences:
            overlap.add(split, sentence)
    return overlap


def sentence(*entities: Entity, words: tuple[str, ...] = WORDS, id: str = "s") -> Sentence:
    return Sentence(id, words, entities=entities)


def test_digests_tell_words_apart() -> None:
    different = [("a", "b"), ("a b",), ("a", " b"), ("ab",), ("a', 'b",), ("a\x00b",), ("a", "\x00b"), ("\ud800",)]
    assert len({digest(words) for words in different}) == len(different)
    assert all(len(digest(words)) == 16 for words in different)


def test_labels_are_the_same_in_any_order_and_without_repetitions() -> None:
    both = Sentence("a", WORDS, (OSLO, BERGEN), relations=(Relation("near", 0, 1),))
    turned = Sentence("b", WORDS, (BERGEN, OSLO, OSLO), relations=(Relation("near", 1, 0), Relation("near", 2, 0)))
    assert label_digest(both) == label_digest(turned)
    away = Sentence("c", WORDS, (OSLO, BERGEN), (Relation("near", 0, 1),), (Link("x", 0, 7, 0),), document="d", position=1)
    assert label_digest(both) == label_digest(away)


def test_labels_differ_by_type_fragments_and_relations() -> None:
    different = [
        sentence(),
        sentence(OSLO),
        sentence(Entity("Place", ((0, 1),))),
        sentence(Entity("City", ((0, 1), (2, 3)))),
        sentence(OSLO, BERGEN),
        Sentence("r", WORDS, (OSLO, BERGEN), relations=(Relation("near", 0, 1),)),
        Sentence("r", WORDS, (OSLO, BERGEN), relations=(Relation("near", 1, 0),)),
    ]
    assert len({label_digest(one) for one in different}) == len(different)


def test_duplicates_count_every_repetition() -> None:
    other = sentence(words=("Rain",))
    overlap = filled(train=[sentence(), other, sentence(), sentence()], test=[other, other])
    assert (overlap.duplicates("train"), overlap.duplicates("test")) == (2, 1)


def test_shared_counts_sequences_and_also_in_counts_sentences() -> None:
    rain, snow = sentence(words=("Rain",)), sentence(words=("Snow",))
    overlap = filled(train=[rain, rain, snow], dev=[rain, rain, rain], test=[snow, sentence()])
    assert overlap.shared() == {"train&dev": 1, "train&test": 1, "dev&test": 0}
    assert overlap.also_in("train") == {"dev": 3, "test": 1}
    assert overlap.also_in("training") == {}


def test_conflicts_within_and_across() -> None:
    rain, wet = sentence(words=("Rain",)), sentence(Entity("Weather", ((0, 1),)), words=("Rain",), id="wet")
    snow = sentence(words=("Snow",))
    overlap = filled(
        train=[sentence(OSLO), sentence(BERGEN, id="second"), sentence(OSLO), rain, snow],
        dev=[wet, snow, sentence(OSLO)],
        test=[wet],
    )
    conflicts = overlap.conflicts()
    assert conflicts.sequences == 2
    assert conflicts.within == {"train": 1, "dev": 0, "test": 0}
    # dev agrees with one of the two annotations in train, and contradicts the other.
    assert conflicts.across == {"train&dev": 2, "train&test": 1, "dev&test": 0}
    assert [(one["split"], one["id"]) for one in conflicts.examples] == [("train", "second"), ("dev", "wet"), ("test", "wet")]
    assert conflicts.examples[0]["text"] == "Oslo and Bergen"


def test_the_same_labels_are_no_conflict() -> None:
    conflicts = filled(train=[sentence(OSLO), sentence(OSLO)], test=[sentence(OSLO)]).conflicts()
    assert conflicts.to_json() == {
        "sequences": 0,
        "within": {"train": 0, "test": 0},
        "across": {"train&test": 0},
        "examples": [],
    }


def test_three_annotations_of_one_sentence_are_one_conflict_with_few_examples() -> None:
    many = [sentence(Entity(f"T{number}", ((0, 1),))) for number in range(20)]
    conflicts = filled(train=many).conflicts()
    assert conflicts.sequences == 1
    assert len(conflicts.examples) == 5
