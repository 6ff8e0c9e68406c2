"""Partial annotation: which spans are known, and predictions that gold cannot judge."""

from __future__ import annotations

from typing import Any

import pytest

from spanwise.core.partial import known_ends, known_types, without_open
from spanwise.core.types import Entity, Relation, Sentence, Span

WORDS = tuple("abcdef")


def entity(type: str, start: int, end: int) -> Entity:
    return Entity(type, (Span(start, end),))


@pytest.mark.parametrize(
    ("marks", "ends", "types"),
    [
        (None, [6] * 6, None),
        ((), [0] * 6, None),
        ([[4, 6], [0, 2]], [2, 2, 0, 0, 6, 6], None),
        ([[0, 2], [2, 3], [1, 4]], [4, 4, 4, 4, 0, 0], None),
        (["A", "B", "A"], [6] * 6, ("A", "B")),
    ],
)
def test_known_spans_and_types(marks: Any, ends: list[int], types: tuple[str, ...] | None) -> None:
    sentence = Sentence("s", WORDS, annotated=marks)
    assert known_ends(sentence) == ends
    assert known_types(sentence) == types


@pytest.mark.parametrize(
    ("marks", "problem"),
    [
        ("A", "not the string 'A'"),
        ([[0, 2], "A"], "not both"),
        ([[0, 2, 3]], "not both"),
        ([3], "not both"),
        ([[2, 2]], "is not a half-open range of the 6 words"),
        ([[5, 7]], "is not a half-open range of the 6 words"),
        ([[0.0, 1]], "is not a half-open range of the 6 words"),
        ([""], "a type is empty"),
    ],
)
def test_wrong_marks_are_refused(marks: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Sentence("s", WORDS, annotated=marks)


PREDICTED = Sentence(
    "s", WORDS, (entity("A", 0, 1), entity("B", 1, 3), entity("A", 4, 5), entity("B", 5, 6)),
    (Relation("r", 0, 1), Relation("r", 2, 3), Relation("r", 0, 2)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("marks", "kept", "relations"),
    [
        (None, [0, 1, 2, 3], [(0, 1), (2, 3), (0, 2)]),
        ([[0, 3]], [0, 1, 3], [(0, 1)]),  # the last one is gold
        ([[0, 2]], [0, 3], []),
        (["A"], [0, 2, 3], []),
        ([], [3], []),
    ],
)
def test_predictions_that_gold_leaves_open_are_dropped(marks: Any, kept: list[int], relations: list[tuple[int, int]]) -> None:
    gold = Sentence("s", WORDS, (entity("B", 5, 6),), annotated=marks)
    result = without_open(gold, PREDICTED)
    assert result.entities == tuple(PREDICTED.entities[index] for index in kept)
    assert [(relation.head, relation.tail) for relation in result.relations] == relations


def test_gold_relations_stay_in_open_parts() -> None:
    gold = Sentence("s", WORDS, PREDICTED.entities[:2], PREDICTED.relations[:1], annotated=())
    assert without_open(gold, PREDICTED).relations == (Relation("r", 0, 1),)


def test_predictions_have_no_marks() -> None:
    assert Sentence("s", WORDS, annotated=()).with_predictions(()).annotated is None
