"""What counting finds without a model: strings, near-duplicates and boundary habits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from cases import limit_cpu

from spanwise.audit.duplicates import ConflictingPair, conflicting_pairs
from spanwise.audit.habits import boundary_habits
from spanwise.audit.inconsistencies import count_suggestions, inconsistent_strings
from spanwise.audit.strings import StringCounts
from spanwise.core.types import Entity, Sentence, Span


def sentence(name: str, text: str, *entities: tuple[str, int, int]) -> Sentence:
    return Sentence(name, tuple(text.split()), tuple(Entity(type, ((start, end),)) for type, start, end in entities))


CORPUS = [
    sentence("1", "Oslo is cold", ("Place", 0, 1)),
    sentence("2", "in Oslo it rains", ("Place", 1, 2)),
    sentence("3", "Oslo and Lima", ("Place", 0, 1), ("Place", 2, 3)),
    sentence("4", "we saw Oslo"),
    sentence("5", "Oslo University opened", ("Organisation", 0, 2)),
]


def test_strings_with_several_labels_list_their_exceptions() -> None:
    (string,) = inconsistent_strings(CORPUS)
    assert (string.words, string.labels) == (("Oslo",), Counter({"Place": 3, "none": 1}))
    assert string.exceptions == ((3, Span(2, 3), ()),)  # not in sentence 5, where it is part of a larger entity


def test_strings_that_always_have_the_same_types_are_consistent() -> None:
    towns = [replace(s, entities=(*s.entities, *(replace(e, type="Town") for e in s.entities))) for s in CORPUS[:3]]
    assert inconsistent_strings(towns) == []
    (string,) = inconsistent_strings([*towns, CORPUS[0]])
    assert (string.words, string.labels) == (("Oslo",), Counter({"Place": 4, "Town": 3}))


@pytest.mark.parametrize("marks", [(), (Span(0, 2),), ("Person",)])
def test_places_that_a_partial_annotation_leaves_open_are_not_inconsistent(marks: Any) -> None:
    assert inconsistent_strings([replace(s, annotated=marks) if s.id == "4" else s for s in CORPUS]) == []
    full = sentence("a", "On Monday Ada went to Oslo", ("Person", 2, 3), ("Place", 5, 6))
    partial = replace(sentence("b", "On Monday Ada went to Oslo", ("Person", 2, 3)), annotated=marks)
    assert conflicting_pairs([full, partial]) == []
    assert len(conflicting_pairs([full, replace(partial, annotated=("Place",))])) == 1


def test_counting_suggests_the_most_frequent_label() -> None:
    assert list(count_suggestions(CORPUS)) == [(3, "missing", None, Entity("Place", ((2, 3),)), 4 / 6)]


def test_occurrences_of_strings_are_counted_once() -> None:
    counts = StringCounts(CORPUS, [("Oslo",), ("Oslo", "University"), ("Lima", "x")])
    assert counts.occurrences == {("Oslo",): 5, ("Oslo", "University"): 1}
    assert counts.annotated[("Oslo",)] == {"Place": 3}


def test_near_duplicates_with_different_entities() -> None:
    sentences = [
        sentence("a", "On Monday Ada went to Oslo in 1999", ("Person", 2, 3), ("Place", 5, 6)),
        sentence("b", "on Monday Ada went to Lima in 2001", ("Place", 5, 6)),  # a word, the case and a number differ
        sentence("c", "On Monday Ada went to Oslo in 1999", ("Person", 2, 3), ("Place", 5, 6)),
        sentence("d", "On Monday Bob went to Lima in 1999"),  # two words differ from a, one from b
    ]
    ada, place = Entity("Person", ((2, 3),)), Entity("Place", ((5, 6),))
    assert conflicting_pairs(sentences) == [
        ConflictingPair(0, 1, (ada,), ()), ConflictingPair(1, 2, (), (ada,)), ConflictingPair(1, 3, (place,), ()),
    ]  # fmt: skip


def test_thirty_thousand_words_in_a_sentence_take_little_time() -> None:
    words = [f"{word}" for word in range(30_000)]
    words[1::2] = ["the"] * 15_000
    entities = [("X", start, start + 2) for start in range(1, 20_000, 2)]
    first, second = (sentence(name, " ".join(words), *entities) for name in "ab")
    with limit_cpu(5, "consistency"):
        (pair,) = conflicting_pairs([first, replace(second, entities=second.entities[1:])])
        strings = inconsistent_strings([first, second])
    assert pair == ConflictingPair(0, 1, first.entities[:1], ())
    assert strings == []


def test_short_sentences_must_be_equal() -> None:
    assert conflicting_pairs([sentence("a", "in Oslo", ("Place", 1, 2)), sentence("b", "in Lima")]) == []
    assert len(conflicting_pairs([sentence("a", "in Oslo", ("Place", 1, 2)), sentence("b", "In Oslo")])) == 1


def test_habits_name_the_rare_cases() -> None:
    outside = [sentence(f"o{index}", "the cells grow", ("Cell", 1, 2)) for index in range(30)]
    inside = [sentence("i", "The cells grow", ("Cell", 0, 2))]
    (habit,) = boundary_habits([*outside, *inside])
    assert (habit.word, habit.side, habit.inside, habit.outside, habit.is_included) == ("the", "start", 1, 30, False)
    assert habit.exceptions == ((30, inside[0].entities[0]),)
    assert boundary_habits([*outside[:15], *inside * 8]) == []  # no habit: a third are exceptions
