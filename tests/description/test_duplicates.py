"""Repeated sentences, with the same or different labels."""

from __future__ import annotations

from dataclasses import replace

from spanwise.core.types import Entity, Link, Relation, Sentence
from spanwise.description.duplicates import DuplicateSentences, digest, label_digest

WORDS = ("Oslo", "and", "Bergen")
OSLO, BERGEN = Entity("City", ((0, 1),)), Entity("City", ((2, 3),))


def collect(**splits: list[Sentence]) -> DuplicateSentences:
    duplicates = DuplicateSentences(list(splits))
    for split, sentences in splits.items():
        for sentence in sentences:
            duplicates.add(split, sentence)
    return duplicates


def sentence(*entities: Entity, words: tuple[str, ...] = WORDS, id: str = "s") -> Sentence:
    return Sentence(id, words, entities=entities)


def test_digests_of_different_words_differ() -> None:
    different = [("a", "b"), ("a b",), ("a", " b"), ("ab",), ("a', 'b",), ("a\x00b",), ("a", "\x00b"), ("\ud800",)]
    assert len({digest(words) for words in different}) == len(different)
    assert all(len(digest(words)) == 16 for words in different)


def test_label_digests_ignore_order_and_repetitions() -> None:
    both = Sentence("a", WORDS, (OSLO, BERGEN), relations=(Relation("near", 0, 1),))
    reordered = Sentence("b", WORDS, (BERGEN, OSLO, OSLO), relations=(Relation("near", 1, 0), Relation("near", 2, 0)))
    assert label_digest(both) == label_digest(reordered)
    with_link = Sentence("c", WORDS, (OSLO, BERGEN), (Relation("near", 0, 1),), (Link("x", 0, 7, 0),), document="d", position=1)
    assert label_digest(both) == label_digest(with_link)


def test_label_digests_depend_on_types_fragments_and_relations() -> None:
    different = [
        sentence(),
        sentence(OSLO),
        sentence(Entity("Place", ((0, 1),))),
        sentence(Entity("City", ((0, 1), (2, 3)))),
        sentence(OSLO, BERGEN),
        Sentence("r", WORDS, (OSLO, BERGEN), relations=(Relation("near", 0, 1),)),
        Sentence("r", WORDS, (OSLO, BERGEN), relations=(Relation("near", 1, 0),)),
    ]
    assert len({label_digest(item) for item in different}) == len(different)


def test_every_repetition_is_counted() -> None:
    other = sentence(words=("Rain",))
    duplicates = collect(train=[sentence(), other, sentence(), sentence()], test=[other, other])
    assert (duplicates.count("train"), duplicates.count("test")) == (2, 1)


def test_shared_sequences_and_repeated_sentences() -> None:
    rain, snow = sentence(words=("Rain",)), sentence(words=("Snow",))
    duplicates = collect(train=[rain, rain, snow], dev=[rain, rain, rain], test=[snow, sentence()])
    assert duplicates.shared() == {"train&dev": 1, "train&test": 1, "dev&test": 0}
    assert duplicates.also_in("train") == {"dev": 3, "test": 1}
    assert duplicates.also_in("training") == {}


def test_conflicts_within_and_across() -> None:
    rain, wet = sentence(words=("Rain",)), sentence(Entity("Weather", ((0, 1),)), words=("Rain",), id="wet")
    snow = sentence(words=("Snow",))
    duplicates = collect(
        train=[sentence(OSLO), sentence(BERGEN, id="second"), sentence(OSLO), rain, snow],
        dev=[wet, snow, sentence(OSLO)],
        test=[wet],
    )
    conflicts = duplicates.conflicts()
    assert conflicts.sequences == 2
    assert conflicts.within == {"train": 1, "dev": 0, "test": 0}
    # dev agrees with one of the two annotations in train, and contradicts the other.
    assert conflicts.across == {"train&dev": 2, "train&test": 1, "dev&test": 0}
    assert [(example["split"], example["id"]) for example in conflicts.examples] == [
        ("train", "second"),
        ("dev", "wet"),
        ("test", "wet"),
    ]
    assert conflicts.examples[0]["text"] == "Oslo and Bergen"


def test_equal_labels_are_not_a_conflict() -> None:
    conflicts = collect(train=[sentence(OSLO), sentence(OSLO)], test=[sentence(OSLO)]).conflicts()
    assert conflicts.to_json() == {
        "sequences": 0,
        "within": {"train": 0, "test": 0},
        "across": {"train&test": 0},
        "examples": [],
    }


def test_partial_annotations_are_not_a_conflict() -> None:
    """An entity without a mark may be missing in a sentence that is not annotated completely."""
    partial = replace(sentence(), annotated=())
    for train in ([partial, sentence(OSLO, BERGEN)], [sentence(OSLO, BERGEN), partial]):
        duplicates = collect(train=train, test=[replace(sentence(OSLO), annotated=((0, 1),))])
        assert (duplicates.count("train"), duplicates.also_in("train")) == (1, {"test": 1})
        assert (duplicates.conflicts().sequences, duplicates.conflicts().examples) == (0, [])
    conflicts = collect(train=[sentence(OSLO), partial, sentence(BERGEN)]).conflicts()
    assert (conflicts.sequences, len(conflicts.examples)) == (1, 1)


def test_many_annotations_of_one_sentence_are_one_conflict() -> None:
    many = [sentence(Entity(f"T{number}", ((0, 1),))) for number in range(20)]
    conflicts = collect(train=many).conflicts()
    assert conflicts.sequences == 1
    assert len(conflicts.examples) == 5
