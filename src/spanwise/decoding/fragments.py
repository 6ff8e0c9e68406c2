"""Entities of several fragments as spans, which can be learned, and back.

An entity in fragments becomes those spans, each a fragment of some type, and links between every two of them. Spans tell a
link, too: one from the first word of the earlier fragment to the first word of the later, and one from last word to last word.
Which fragments belong together is then read from a graph: fragments are its nodes, links its edges, and entities its maximal
groups in which everything is linked with everything. So a fragment may serve several entities: of "left and right knee and hip
pain", "pain" is linked with all four words before it, but "left" is not linked with "right" nor "knee" with "hip". Types do
not divide the graph: a group has the type that its fragments agree on best. Such entities are rare, and what makes a fragment
is learned from all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spanwise.core.types import Entity, Sentence, Span

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
LINKS = ("first words", "last words")  # of two fragments of one entity
# The most probable are taken where a model is sure of too much:
MOST = 256  # fragments of a sentence, which bounds the pairs
LIMIT = 24  # fragments that hang together, which bounds the groups
DIGITS = 5  # of a probability that decide who is taken, lest rounding does
LEAST = 1e-9  # of a type's share in a fragment, where there is none


class Columns(NamedTuple):
    """Scored spans, packed."""

    sentence: Ints
    start: Ints
    end: Ints
    label: Ints
    score: npt.NDArray[np.float32]


def discontinuous_types(sentences: Iterable[Sentence]) -> tuple[str, ...]:
    """The types that have entities of several fragments, sorted."""
    return tuple(sorted({entity.type for sentence in sentences for entity in sentence.entities if entity.is_discontinuous}))


def in_fragments(sentence: Sentence, types: Sequence[str], max_width: int | None = None) -> list[Entity]:
    """The discontinuous entities of these types with no fragment wider than ``max_width``, equal ones once."""
    return [
        entity
        for entity in dict.fromkeys(sentence.entities)
        if entity.is_discontinuous
        and entity.type in types
        and (max_width is None or all(fragment.width <= max_width for fragment in entity.fragments))
    ]


def fragment_rows(entities: Iterable[Entity], types: Sequence[str]) -> Ints:
    """Start, end and place of the type of every fragment, each once: [n, 3].

    >>> fragment_rows([Entity("X", ((0, 1), (3, 4))), Entity("X", ((1, 2), (3, 4)))], ["W", "X"]).tolist()
    [[0, 1, 1], [1, 2, 1], [3, 4, 1]]
    """
    rows = {(*fragment, types.index(entity.type)) for entity in entities for fragment in entity.fragments}
    return np.array(sorted(rows), np.int64).reshape(-1, 3)


def link_rows(entities: Iterable[Entity]) -> Ints:
    """Start, end (behind the last word) and place in ``LINKS`` of the spans that tell links, each once: [n, 3].

    >>> link_rows([Entity("X", ((0, 2), (3, 5)))]).tolist()
    [[0, 4, 0], [1, 5, 1]]
    """
    rows = set()
    for entity in entities:
        for one, other in combinations(entity.fragments, 2):
            rows |= {(one.start, other.start + 1, 0), (one.end - 1, other.end, 1)}
    return np.array(sorted(rows), np.int64).reshape(-1, 3)


def joined(fragments: Columns, links: Columns, *, count: int, types: Sequence[str]) -> list[list[Entity]]:
    """The discontinuous entities of each of ``count`` sentences.

    Fragments have a row for each type, whose score is its share in the probability that the span is a fragment. An entity's
    type is the one with the largest product of its fragments' shares; it scores as its least sure fragment, link or type.

    Two fragments are linked when both spans that tell so are there. Those that overlap never are, nor those that touch, for
    they would be one: so whatever the scores, the entities are valid.
    """
    scores: tuple[dict[tuple[int, int, int], float], ...] = ({}, {})
    for where, start, end, label, score in zip(*(column.tolist() for column in links), strict=True):
        scores[label][where, start, end - 1] = score
    shares: dict[int, dict[Span, Floats]] = {}
    for where, start, end, label, score in zip(*(column.tolist() for column in fragments), strict=True):
        shares.setdefault(where, {}).setdefault(Span(start, end), np.zeros(len(types)))[label] = score
    found: list[list[Entity]] = [[] for _ in range(count)]
    for where, of_types in shares.items():
        chances = {span: float(own.sum()) for span, own in of_types.items()}
        linked = {}
        for one, other in combinations(sorted(_likeliest(of_types, chances, MOST)), 2):
            if one.end < other.start:
                first = scores[0].get((where, one.start, other.start))
                last = scores[1].get((where, one.end - 1, other.end - 1))
                if first is not None and last is not None:
                    linked[one, other] = min(first, last)
        best = {span for together in _hanging_together(linked) for span in _likeliest(together, chances, LIMIT)}
        for members in maximal_groups(pair for pair in linked if best.issuperset(pair)):
            together = sum(np.log(np.maximum(of_types[span], LEAST)) for span in members)
            typing = np.exp(together - np.logaddexp.reduce(together))
            kind = int(typing.argmax())
            parts = [chances[span] for span in members] + [linked[pair] for pair in combinations(members, 2)]
            found[where].append(Entity(types[kind], members, score=round(min(*parts, float(typing[kind]), 1.0), 6)))
    return found


def _likeliest(spans: Iterable[Span], chances: Mapping[Span, float], most: int) -> list[Span]:
    return sorted(spans, key=lambda span: (-round(chances[span], DIGITS), span))[:most]


def _hanging_together(linked: Iterable[tuple[Span, Span]]) -> list[set[Span]]:
    """The spans that links lead to from one another.

    >>> a, b, c, d, e = (Span(i, i + 1) for i in (0, 2, 4, 6, 8))
    >>> [sorted(span.start for span in spans) for spans in _hanging_together([(a, b), (c, d), (b, e)])]
    [[4, 6], [0, 2, 8]]
    """
    groups: list[set[Span]] = []
    for pair in linked:
        joins = [group for group in groups if not group.isdisjoint(pair)]
        groups = [group for group in groups if group.isdisjoint(pair)] + [set(pair).union(*joins)]
    return groups


def maximal_groups(linked: Iterable[tuple[Span, Span]]) -> Iterator[tuple[Span, ...]]:
    """The groups of two or more in which every two are linked and to which none can be added (Bron and Kerbosch 1973), sorted.

    >>> a, b, c, d = (Span(i, i + 1) for i in (0, 2, 4, 6))
    >>> [[span.start for span in group] for group in maximal_groups([(a, d), (b, c), (b, d), (c, d)])]
    [[0, 6], [2, 4, 6]]
    """
    neighbours: dict[Span, set[Span]] = {}
    for one, other in linked:
        neighbours.setdefault(one, set()).add(other)
        neighbours.setdefault(other, set()).add(one)
    return iter(sorted(_grown((), set(neighbours), set(), neighbours)))


def _grown(
    group: tuple[Span, ...], candidates: Set[Span], done: Set[Span], neighbours: Mapping[Span, Set[Span]]
) -> Iterator[tuple[Span, ...]]:
    """The maximal groups that hold ``group`` and otherwise only ``candidates``; with one of ``done`` they were found before."""
    if not candidates and not done and group:
        yield tuple(sorted(group))
    if not candidates:
        return
    # A maximal group has the pivot or something that is not linked with it, so nothing else need be tried.
    pivot = max(sorted(candidates | done), key=lambda span: len(candidates & neighbours[span]))
    for span in sorted(candidates - neighbours[pivot]):
        yield from _grown((*group, span), candidates & neighbours[span], done & neighbours[span], neighbours)
        candidates, done = candidates - {span}, done | {span}


def perfect(entities: Iterable[Entity], types: Sequence[str]) -> set[Entity]:
    """What would be read from these entities' own fragments and links: not all of them, where groups hide in larger ones.

    >>> a, b = Entity("X", ((0, 1), (3, 4))), Entity("X", ((0, 1), (3, 4), (6, 7)))
    >>> perfect([a, b], ["X"]) == {b}
    True
    """
    entities = list(entities)
    fragments, links = (
        Columns(np.zeros(len(rows), np.int64), rows[:, 0], rows[:, 1], rows[:, 2], np.ones(len(rows), np.float32))
        for rows in (fragment_rows(entities, types), link_rows(entities))
    )
    _, which, number = np.unique(np.stack(fragments[1:3]), axis=1, return_inverse=True, return_counts=True)
    fragments = fragments._replace(score=(1 / number[which.reshape(-1)]).astype(np.float32))  # types share a fragment alike
    return set(joined(fragments, links, count=1, types=types)[0])
