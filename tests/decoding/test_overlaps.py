"""Overlap policies."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from spanwise import Entity, Relation, Sentence, SpanwiseError
from spanwise.decoding.overlaps import overlap_filter

WORDS = tuple("abcdefghij")


def sentence(*entities: tuple[str, list[tuple[int, int]], float]) -> Sentence:
    return Sentence("s", WORDS, tuple(Entity(type, tuple(spans), score) for type, spans, score in entities))  # type: ignore[arg-type]


def types(overlap: str, annotated: Sentence) -> str:
    return "".join(entity.type for entity in overlap_filter(overlap)(annotated).entities)


def test_three_nested_levels() -> None:
    nested = sentence(
        ("A", [(0, 6)], 0.5), ("B", [(0, 3)], 0.9), ("C", [(1, 2)], 0.7), ("D", [(4, 6)], 0.6), ("E", [(7, 8)], 0.1)
    )
    assert types("nested", nested) == "ABCDE"
    assert types("flat", nested) == "BDE"
    assert types("outermost", nested) == "AE"


def test_outermost_compares_words() -> None:
    # "breast … cancer" does not contain "ovarian cancer"; "breast and ovarian cancer" contains both.
    pair = sentence(("A", [(0, 1), (3, 4)], 0.5), ("B", [(2, 4)], 0.6))
    assert types("outermost", pair) == "AB"
    assert types("outermost", sentence(("C", [(0, 4)], 0.1), ("A", [(0, 1), (3, 4)], 0.5), ("B", [(2, 4)], 0.6))) == "C"
    assert types("outermost", sentence(("A", [(0, 2)], 0.5), ("B", [(0, 2)], 0.6))) == "AB"  # two types on one span
    assert types("outermost", sentence(("A", [(0, 2)], 0.5), ("B", [(1, 3)], 0.6))) == "AB"  # neither contains the other


def test_relations_of_dropped_entities() -> None:
    annotated = Sentence(
        "s", WORDS, (Entity("A", ((0, 3),), 0.9), Entity("B", ((1, 2),), 0.8), Entity("C", ((5, 6),), 0.7)),  # type: ignore[arg-type]
        (Relation("R", 0, 2), Relation("R", 1, 2), Relation("R", 2, 0)),
    )  # fmt: skip
    assert overlap_filter("flat")(annotated).relations == (Relation("R", 0, 1), Relation("R", 1, 0))
    assert overlap_filter("nested")(annotated) is annotated


def test_policies_equal_their_definition() -> None:
    choose = random.Random(0)
    for _ in range(300):
        rows = []
        for index in range(choose.randint(0, 8)):
            start = choose.randint(0, 8)
            rows.append((chr(65 + index), [(start, choose.randint(start + 1, 10))], choose.random()))
        annotated = sentence(*rows)
        flat = overlap_filter("flat")(annotated).entities
        assert not any(a.range.overlaps(b.range) for a, b in combinations(flat, 2))
        for entity in annotated.entities:  # a dropped entity overlaps a more probable one that stays
            better = [e for e in flat if e.range.overlaps(entity.range) and (e.score or 0) > (entity.score or 0)]
            assert entity in flat or better
        outer = [
            a
            for a in annotated.entities
            if not any(b.range.contains(a.range) and b.range != a.range for b in annotated.entities)
        ]
        assert list(overlap_filter("outermost")(annotated).entities) == outer


def test_unknown_policy() -> None:
    with pytest.raises(SpanwiseError, match=r"unknown overlap policy 'flatt' \(did you mean 'flat'"):
        overlap_filter("flatt")
