"""Decoding of fragments and links, compared with an exhaustive search and a generated corpus."""

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
    return PackedSpans(*(table[:, column].astype(np.int64) for column in range(4)), table[:, 4].astype(np.float32))  # type: ignore[call-arg]


def link_spans(index: int, one: Span, other: Span, score: float = 0.9) -> list[Row]:
    """The two spans of a link."""
    return [(index, one.start, other.start + 1, 0, score), (index, one.end - 1, other.end, 1, score)]


def starts(groups: list[tuple[Span, ...]]) -> list[list[int]]:
    return [[span.start for span in group] for group in groups]


@pytest.mark.parametrize(
    ("links", "cliques"),
    [
        ([], []),
        ([(0, 2)], [[0, 2]]),
        ([(0, 4), (2, 4)], [[0, 4], [2, 4]]),  # left … pain, right … pain
        ([(0, 2), (0, 4), (2, 4)], [[0, 2, 4]]),
        ([(0, 2), (2, 4), (4, 6)], [[0, 2], [2, 4], [4, 6]]),  # a chain is not a clique
        ([(0, 4), (2, 6)], [[0, 4], [2, 6]]),  # crossing
        ([(0, 2), (0, 6), (2, 6), (0, 4), (4, 6)], [[0, 2, 6], [0, 4, 6]]),  # muscle, arm or thigh, sore
        ([(0, 4), (0, 6), (2, 4), (2, 6)], [[0, 4], [0, 6], [2, 4], [2, 6]]),  # all pairs
        ([(0, 2), (0, 4), (2, 4), (4, 6)], [[0, 2, 4], [4, 6]]),
    ],
)
def test_cliques_by_hand(links: list[tuple[int, int]], cliques: list[list[int]]) -> None:
    spans = [(Span(a, a + 1), Span(b, b + 1)) for a, b in links]
    assert starts(list(maximal_cliques(spans))) == cliques
    assert starts(list(maximal_cliques(spans[::-1]))) == cliques


@st.composite
def scored(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """Random fragments and links in two sentences of six words, with random scores."""
    spans = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda ends: (min(ends), max(ends) + 1))
    rows = st.tuples(st.integers(0, 1), spans, st.integers(0, 1))
    probability = st.floats(0.125, 0.5, width=32)

    def draw_rows(max_size: int) -> list[Row]:
        values = draw(st.dictionaries(rows, probability, max_size=max_size))
        return [(index, start, end, label, score) for (index, (start, end), label), score in values.items()]

    return draw_rows(14), draw_rows(60)


@given(scored())
def test_entities_equal_an_exhaustive_search(
    rows: tuple[list[Row], list[Row]],
) -> None:
    fragments, links = rows
    predicted = join_fragments(columns(fragments), columns(links), count=2, types=TYPES)
    link_scores = {row[:4]: row[4] for row in links}
    expected: list[dict[tuple[Span, ...], tuple[float, list[float]]]] = [{}, {}]
    for index in {row[0] for row in fragments}:
        shares: dict[Span, list[float]] = {}
        for row in fragments:
            if row[0] == index:
                shares.setdefault(Span(row[1], row[2]), [0.0, 0.0])[row[3]] = row[4]

        def link(one: Span, other: Span, index: int = index) -> float:
            if one.end >= other.start:
                return 0.0
            return min(link_scores.get(key, 0.0) for key in (row[:4] for row in link_spans(index, one, other)))

        groups = [
            set(group)
            for size in range(2, len(shares) + 1)
            for group in combinations(sorted(shares), size)
            if all(link(*pair) for pair in combinations(group, 2))
        ]
        for group in groups:
            if not any(group < other for other in groups):
                parts = [sum(shares[span]) for span in group] + [link(*pair) for pair in combinations(sorted(group), 2)]
                products = [prod(max(shares[span][label], 1e-9) for span in group) for label in range(2)]
                expected[index][tuple(sorted(group))] = (min(parts), [product / sum(products) for product in products])
    for entities, cliques in zip(predicted, expected, strict=True):
        assert len(entities) == len(cliques)
        for entity in entities:
            min_score, typing = cliques[entity.fragments]
            assert typing[TYPES.index(entity.type)] == pytest.approx(max(typing))
            assert entity.score == pytest.approx(min(min_score, max(typing)), abs=1e-5)
            assert entity.is_discontinuous


def test_link_needs_both_spans() -> None:
    one, other = Span(0, 2), Span(3, 5)
    fragments = columns([(0, 0, 2, 0, 0.8), (0, 3, 5, 0, 0.7), (1, 0, 2, 0, 0.8)])
    first, last = link_spans(0, one, other, 0.6)
    predicted = join_fragments(fragments, columns([first, last]), count=2, types=TYPES)
    assert predicted == [[Entity("A", (one, other))], []]
    assert predicted[0][0].score == pytest.approx(0.6)
    for links in ([first], [last], link_spans(1, one, other)):  # the second sentence has one fragment
        assert join_fragments(fragments, columns(links), count=2, types=TYPES) == [[], []]


def test_number_of_fragments_is_bounded() -> None:
    """All spans of 40 words are fragments, and all are linked: only the most probable ones are decoded."""
    spans = [(0, a, b, 0, 1 - (a + 41 * b) / 10000) for a in range(40) for b in range(a + 1, 41)]
    links = [(0, a, b, label, 0.9) for a in range(40) for b in range(a + 1, 41) for label in range(2)]
    (predicted,) = join_fragments(columns(spans), columns(links), count=1, types=TYPES)
    most_probable = sorted(spans, key=lambda row: -row[4])[:MAX_COMPONENT]
    assert predicted
    assert {fragment for entity in predicted for fragment in entity.fragments} <= {Span(*row[1:3]) for row in most_probable}


def test_limit_applies_to_components() -> None:
    entities = [Entity("A", ((4 * n, 4 * n + 1), (4 * n + 2, 4 * n + 3))) for n in range(2 * MAX_COMPONENT)]
    assert recoverable_entities(entities, TYPES) == set(entities)


def test_rounding_errors_do_not_select_fragments() -> None:
    """All fragments are linked, and their scores differ only in the seventh digit."""
    words = range(0, 2 * MAX_COMPONENT + 20, 2)
    links = [row for a in words for b in words if a < b for row in link_spans(0, Span(a, a + 1), Span(b, b + 1))]
    predicted = [
        join_fragments(columns([(0, a, a + 1, 0, 0.7 + sign * a * 1e-8) for a in words]), columns(links), count=1, types=TYPES)
        for sign in (-1, 1)
    ]
    assert predicted[0] == predicted[1]
    assert len(predicted[0][0][0].fragments) == MAX_COMPONENT


def test_fragments_and_links_of_entities() -> None:
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


def test_cliques_within_cliques_are_lost() -> None:
    smaller = Entity("A", ((0, 1), (2, 3)))
    larger = Entity("A", ((0, 1), (2, 3), (4, 5)))
    assert recoverable_entities([smaller, larger], TYPES) == {larger}
    triangle = [Entity("A", (a, b)) for a, b in combinations([Span(0, 1), Span(2, 3), Span(4, 5)], 2)]
    assert recoverable_entities(triangle, TYPES) == {larger}
    assert recoverable_entities([smaller, Entity("B", larger.fragments)], TYPES) == {Entity("B", larger.fragments)}


def test_type_of_a_clique() -> None:
    left, right, knee = Span(0, 1), Span(2, 3), Span(4, 5)
    rows = [(0, *left, 0, 0.5), (0, *left, 1, 0.4), (0, *knee, 0, 0.1), (0, *knee, 1, 0.8)]
    (predicted,) = join_fragments(columns(rows), columns(link_spans(0, left, knee, 0.95)), count=1, types=TYPES)
    assert [(entity.type, entity.fragments) for entity in predicted] == [("B", (left, knee))]
    assert predicted[0].score == pytest.approx(
        0.32 / 0.37, abs=1e-5
    )  # the type has the lowest score: 0.4 * 0.8 against 0.5 * 0.1
    # A fragment of entities of two types takes the type of the other fragment.
    both = [Entity("A", (left, knee)), Entity("B", (right, knee))]
    assert recoverable_entities(both, TYPES) == set(both)


@pytest.mark.parametrize("kind", reports.CLAUSES)
def test_gold_is_recovered_for_every_pattern(kind: str) -> None:
    choose = random.Random(1)
    types, count = ("Action", "Finding"), 0
    for number in range(30):
        sentence = reports.sentence(number, choose, (kind,))
        entities = discontinuous_entities(sentence, types)
        assert recoverable_entities(entities, types) == {entity for entity in sentence.entities if entity.is_discontinuous}
        count += len(entities)
    assert bool(count) == (kind in reports.DISCONTINUOUS)


def test_generated_corpus() -> None:
    corpus = reports.corpus(400, 50, 50)
    sentences = [sentence for split in corpus for sentence in corpus[split]]
    assert len({sentence.words for sentence in sentences}) == 500
    by_sentence = [discontinuous_entities(sentence, ("Action", "Finding")) for sentence in sentences]
    entities = [entity for group in by_sentence for entity in group]
    assert len(entities) > 900
    assert sum(len(entity.fragments) == 3 for entity in entities) > 100
    assert sum(len(group) > 2 for group in by_sentence) > 100
    assert all(recoverable_entities(group, ("Action", "Finding")) == set(group) for group in by_sentence)
    # Links are needed: most pairs of fragments of the same type belong to different entities.
    pairs = linked = 0
    for group in by_sentence:
        for kind in ("Action", "Finding"):
            fragments = {fragment for entity in group if entity.type == kind for fragment in entity.fragments}
            pairs += sum(a.end < b.start for a, b in combinations(sorted(fragments), 2))
            linked += len({pair for entity in group if entity.type == kind for pair in combinations(entity.fragments, 2)})
    assert 2 * linked < pairs
