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


def types(overlap: str, one: Sentence) -> str:
    return "".join(entity.type for entity in overlap_filter(overlap)(one).entities)


def test_three_levels() -> None:
    nested = sentence(
        ("A", [(0, 6)], 0.5), ("B", [(0, 3)], 0.9), ("C", [(1, 2)], 0.7), ("D", [(4, 6)], 0.6), ("E", [(7, 8)], 0.1)
    )
    assert types("nested", nested) == "ABCDE"
    assert types("flat", nested) == "BDE"
    assert types("outermost", nested) == "AE"


def test_outermost_looks_at_words_and_not_at_what_lies_between() -> None:
    # "breast … cancer" is not around "ovarian cancer"; both are inside "breast and ovarian cancer".
    pair = sentence(("A", [(0, 1), (3, 4)], 0.5), ("B", [(2, 4)], 0.6))
    assert types("outermost", pair) == "AB"
    assert types("outermost", sentence(("C", [(0, 4)], 0.1), ("A", [(0, 1), (3, 4)], 0.5), ("B", [(2, 4)], 0.6))) == "C"
    assert types("outermost", sentence(("A", [(0, 2)], 0.5), ("B", [(0, 2)], 0.6))) == "AB"  # two types on one span
    assert types("outermost", sentence(("A", [(0, 2)], 0.5), ("B", [(1, 3)], 0.6))) == "AB"  # neither is inside


def test_relations_go_with_their_entities() -> None:
    one = Sentence(
        "s", WORDS, (Entity("A", ((0, 3),), 0.9), Entity("B", ((1, 2),), 0.8), Entity("C", ((5, 6),), 0.7)),  # type: ignore[arg-type]
        (Relation("R", 0, 2), Relation("R", 1, 2), Relation("R", 2, 0)),
    )  # fmt: skip
    assert overlap_filter("flat")(one).relations == (Relation("R", 0, 1), Relation("R", 1, 0))
    assert overlap_filter("nested")(one) is one


def test_against_a_literal_version() -> None:
    choose = random.Random(0)
    for _ in range(300):
        rows = []
        for number in range(choose.randint(0, 8)):
            start = choose.randint(0, 8)
            rows.append((chr(65 + number), [(start, choose.randint(start + 1, 10))], choose.random()))
        one = sentence(*rows)
        flat = overlap_filter("flat")(one).entities
        assert not any(a.range.overlaps(b.range) for a, b in combinations(flat, 2))
        for entity in one.entities:  # what is left out overlaps something surer that is kept
            better = [e for e in flat if e.range.overlaps(entity.range) and (e.score or 0) > (entity.score or 0)]
            assert entity in flat or better
        outer = [a for a in one.entities if not any(b.range.contains(a.range) and b.range != a.range for b in one.entities)]
        assert list(overlap_filter("outermost")(one).entities) == outer


def test_unknown_policy() -> None:
    with pytest.raises(SpanwiseError, match=r"unknown overlap policy 'flatt' \(did you mean 'flat'"):
        overlap_filter("flatt")
