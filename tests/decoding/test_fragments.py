"""Fragments and links against every subset of fragments, and the generated corpus there and back."""

from __future__ import annotations

import random
from itertools import combinations
from math import prod

import discontinuous_corpus as reports
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise.core.types import Entity, Sentence, Span
from spanwise.decoding.cliques import maximal_cliques
from spanwise.decoding.fragments import (
    MAX_COMPONENT,
    PackedSpans,
    discontinuous_entities,
    discontinuous_types,
    fragment_rows,
    join_fragments,
    link_rows,
    recoverable_entities,
)

TYPES = ("A", "B")
Row = tuple[int, int, int, int, float]


def columns(rows: list[Row]) -> PackedSpans:
    table = np.array(rows, np.float64).reshape(-1, 5)
    return PackedSpans(*(table[:, at].astype(np.int64) for at in range(4)), table[:, 4].astype(np.float32))  # type: ignore[call-arg]


def told(where: int, one: Span, other: Span, score: float = 0.9) -> list[Row]:
    """The two spans that tell a link."""
    return [(where, one.start, other.start + 1, 0, score), (where, one.end - 1, other.end, 1, score)]


def places(groups: list[tuple[Span, ...]]) -> list[list[int]]:
    return [[span.start for span in group] for group in groups]


@pytest.mark.parametrize(
    ("links", "groups"),
    [
        ([], []),
        ([(0, 2)], [[0, 2]]),
        ([(0, 4), (2, 4)], [[0, 4], [2, 4]]),  # left … pain, right … pain
        ([(0, 2), (0, 4), (2, 4)], [[0, 2, 4]]),
        ([(0, 2), (2, 4), (4, 6)], [[0, 2], [2, 4], [4, 6]]),  # a chain is no group
        ([(0, 4), (2, 6)], [[0, 4], [2, 6]]),  # crossing
        ([(0, 2), (0, 6), (2, 6), (0, 4), (4, 6)], [[0, 2, 6], [0, 4, 6]]),  # muscle, arm or thigh, sore
        ([(0, 4), (0, 6), (2, 4), (2, 6)], [[0, 4], [0, 6], [2, 4], [2, 6]]),  # everything with everything
        ([(0, 2), (0, 4), (2, 4), (4, 6)], [[0, 2, 4], [4, 6]]),
    ],
)
def test_groups_by_hand(links: list[tuple[int, int]], groups: list[list[int]]) -> None:
    spans = [(Span(a, a + 1), Span(b, b + 1)) for a, b in links]
    assert places(list(maximal_cliques(spans))) == groups
    assert places(list(maximal_cliques(spans[::-1]))) == groups


@st.composite
def scored(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """Any fragments and links in two sentences of six words, overlapping and touching ones, with scores of any kind."""
    spans = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda ends: (min(ends), max(ends) + 1))
    rows = st.tuples(st.integers(0, 1), spans, st.integers(0, 1))
    chance = st.floats(0.125, 0.5, width=32)

    def drawn(most: int) -> list[Row]:
        found = draw(st.dictionaries(rows, chance, max_size=most))
        return [(where, start, end, label, score) for (where, (start, end), label), score in found.items()]

    return drawn(14), drawn(60)


@given(scored())
def test_whatever_the_scores_entities_are_valid_and_those_of_a_search_through_all_subsets(
    rows: tuple[list[Row], list[Row]],
) -> None:
    fragments, links = rows
    found = join_fragments(columns(fragments), columns(links), count=2, types=TYPES)
    told_links = {row[:4]: row[4] for row in links}
    expected: list[dict[tuple[Span, ...], tuple[float, list[float]]]] = [{}, {}]
    for where in {row[0] for row in fragments}:
        own: dict[Span, list[float]] = {}
        for row in fragments:
            if row[0] == where:
                own.setdefault(Span(row[1], row[2]), [0.0, 0.0])[row[3]] = row[4]

        def link(one: Span, other: Span, where: int = where) -> float:
            if one.end >= other.start:
                return 0.0
            return min(told_links.get(key, 0.0) for key in (row[:4] for row in told(where, one, other)))

        groups = [
            set(group)
            for size in range(2, len(own) + 1)
            for group in combinations(sorted(own), size)
            if all(link(*pair) for pair in combinations(group, 2))
        ]
        for group in groups:
            if not any(group < other for other in groups):
                parts = [sum(own[span]) for span in group] + [link(*pair) for pair in combinations(sorted(group), 2)]
                products = [prod(max(own[span][label], 1e-9) for span in group) for label in range(2)]
                expected[where][tuple(sorted(group))] = (min(parts), [product / sum(products) for product in products])
    for one, groups in zip(found, expected, strict=True):
        assert len(one) == len(groups)
        for entity in one:
            min_scores, typing = groups[entity.fragments]
            assert typing[TYPES.index(entity.type)] == pytest.approx(max(typing))
            assert entity.score == pytest.approx(min(min_scores, max(typing)), abs=1e-5)
            assert entity.is_discontinuous


def test_both_spans_must_tell_of_a_link_and_of_this_sentence() -> None:
    one, other = Span(0, 2), Span(3, 5)
    fragments = columns([(0, 0, 2, 0, 0.8), (0, 3, 5, 0, 0.7), (1, 0, 2, 0, 0.8)])
    first, last = told(0, one, other, 0.6)
    found = join_fragments(fragments, columns([first, last]), count=2, types=TYPES)
    assert found == [[Entity("A", (one, other))], []]
    assert found[0][0].score == pytest.approx(0.6)
    for some in ([first], [last], told(1, one, other)):  # the second sentence has one fragment
        assert join_fragments(fragments, columns(some), count=2, types=TYPES) == [[], []]


def test_a_model_that_is_sure_of_everything_is_bounded() -> None:
    """All spans of 40 words are fragments, and all are linked: only the surest fragments are looked at."""
    spans = [(0, a, b, 0, 1 - (a + 41 * b) / 10000) for a in range(40) for b in range(a + 1, 41)]
    links = [(0, a, b, label, 0.9) for a in range(40) for b in range(a + 1, 41) for label in range(2)]
    (found,) = join_fragments(columns(spans), columns(links), count=1, types=TYPES)
    surest = sorted(spans, key=lambda row: -row[4])[:MAX_COMPONENT]
    assert found
    assert {fragment for entity in found for fragment in entity.fragments} <= {Span(*row[1:3]) for row in surest}


def test_what_hangs_together_is_bounded_and_not_what_stands_apart() -> None:
    many = [Entity("A", ((4 * n, 4 * n + 1), (4 * n + 2, 4 * n + 3))) for n in range(2 * MAX_COMPONENT)]
    assert recoverable_entities(many, TYPES) == set(many)


def test_who_is_left_out_does_not_hang_on_rounding() -> None:
    """Fragments that are all linked with one another and alike but for the seventh digit."""
    words = range(0, 2 * MAX_COMPONENT + 20, 2)
    links = [row for a in words for b in words if a < b for row in told(0, Span(a, a + 1), Span(b, b + 1))]
    found = [
        join_fragments(columns([(0, a, a + 1, 0, 0.7 + sign * a * 1e-8) for a in words]), columns(links), count=1, types=TYPES)
        for sign in (-1, 1)
    ]
    assert found[0] == found[1]
    assert len(found[0][0][0].fragments) == MAX_COMPONENT


def test_what_is_learned_of_an_entity() -> None:
    """ "left and right knee pain and swelling"."""
    entities = [Entity("B", ((0, 1), (3, 5))), Entity("B", ((0, 1), (3, 4), (6, 7))), Entity("B", ((2, 4), (6, 7)))]
    assert fragment_rows(entities, TYPES).tolist() == [[0, 1, 1], [2, 4, 1], [3, 4, 1], [3, 5, 1], [6, 7, 1]]
    firsts = {(0, 4), (0, 7), (3, 7), (2, 7)}
    lasts = {(0, 5), (0, 4), (0, 7), (3, 7)}
    assert {tuple(row) for row in link_rows(entities).tolist()} == {(*s, 0) for s in firsts} | {(*s, 1) for s in lasts}
    assert recoverable_entities(entities, TYPES) == set(entities)
    assert fragment_rows([], TYPES).shape == link_rows([]).shape == (0, 3)
    sentence = Sentence("s", ("w",) * 8, (*entities, *entities, Entity("A", ((0, 4), (6, 7))), Entity("C", ((0, 1), (2, 3)))))
    assert discontinuous_entities(sentence, TYPES, 2) == entities
    assert len(discontinuous_entities(sentence, TYPES)) == 4
    assert discontinuous_types([sentence]) == ("A", "B", "C")


def test_groups_within_groups_cannot_be_told() -> None:
    inside = Entity("A", ((0, 1), (2, 3)))
    around = Entity("A", ((0, 1), (2, 3), (4, 5)))
    assert recoverable_entities([inside, around], TYPES) == {around}
    triangle = [Entity("A", (a, b)) for a, b in combinations([Span(0, 1), Span(2, 3), Span(4, 5)], 2)]
    assert recoverable_entities(triangle, TYPES) == {around}
    assert recoverable_entities([inside, Entity("B", around.fragments)], TYPES) == {Entity("B", around.fragments)}


def test_a_group_has_the_type_that_its_fragments_agree_on() -> None:
    left, right, knee = Span(0, 1), Span(2, 3), Span(4, 5)
    rows = [(0, *left, 0, 0.5), (0, *left, 1, 0.4), (0, *knee, 0, 0.1), (0, *knee, 1, 0.8)]
    (found,) = join_fragments(columns(rows), columns(told(0, left, knee, 0.95)), count=1, types=TYPES)
    assert [(entity.type, entity.fragments) for entity in found] == [("B", (left, knee))]
    assert found[0].score == pytest.approx(0.32 / 0.37, abs=1e-5)  # its type is the least sure: 0.4 * 0.8 against 0.5 * 0.1
    # A fragment that serves entities of two types takes that of its partner.
    both = [Entity("A", (left, knee)), Entity("B", (right, knee))]
    assert recoverable_entities(both, TYPES) == set(both)


@pytest.mark.parametrize("kind", reports.CLAUSES)
def test_perfect_scores_give_the_gold_of_every_pattern(kind: str) -> None:
    choose = random.Random(1)
    types, broken = ("Action", "Finding"), 0
    for number in range(30):
        sentence = reports.sentence(number, choose, (kind,))
        own = discontinuous_entities(sentence, types)
        assert recoverable_entities(own, types) == {entity for entity in sentence.entities if entity.is_discontinuous}
        broken += len(own)
    assert bool(broken) == (kind in reports.DISCONTINUOUS)


def test_the_generated_corpus_has_what_it_is_for() -> None:
    corpus = reports.corpus(400, 50, 50)
    every = [sentence for split in corpus for sentence in corpus[split]]
    assert len({sentence.words for sentence in every}) == 500
    own = [discontinuous_entities(sentence, ("Action", "Finding")) for sentence in every]
    entities = [entity for one in own for entity in one]
    assert len(entities) > 900
    assert sum(len(entity.fragments) == 3 for entity in entities) > 100
    assert sum(len(one) > 2 for one in own) > 100
    assert all(recoverable_entities(one, ("Action", "Finding")) == set(one) for one in own)
    # Finding fragments is not enough: most pairs of fragments of one type in a sentence do not belong together.
    pairs = linked = 0
    for one in own:
        for kind in ("Action", "Finding"):
            fragments = {fragment for entity in one if entity.type == kind for fragment in entity.fragments}
            pairs += sum(a.end < b.start for a, b in combinations(sorted(fragments), 2))
            linked += len({pair for entity in one if entity.type == kind for pair in combinations(entity.fragments, 2)})
    assert 2 * linked < pairs
