"""Scored spans to entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from spanwise.core.types import Entity, Relation, Span
from spanwise.decoding.soft_nms import SoftNms

Policy: TypeAlias = str | SoftNms
_Ints: TypeAlias = npt.NDArray[np.int64]
_Spans: TypeAlias = tuple[_Ints, _Ints, _Ints, _Ints, npt.NDArray[np.float32]]  # as ``decode`` takes them
_Row: TypeAlias = tuple[float, int, int, str]  # the score below zero, so that the surest comes first; start, end, type


class Predictions(NamedTuple):
    """What is found in a sentence."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...] = ()


def decode(
    sentence: _Ints,
    start: _Ints,
    end: _Ints,
    label: _Ints,
    score: npt.NDArray[np.float32],
    *,
    count: int,
    types: tuple[str, ...],
    policy: Policy = "nested",
    min_scores: Mapping[str, float] | None = None,
) -> list[tuple[Entity, ...]]:
    """The entities of each of ``count`` sentences, in text order, from packed scored spans.

    ``policy`` "overlapping" keeps every span. "nested" and "flat" take the most probable first and drop what crosses, or what
    overlaps, one already taken. A ``SoftNms`` lowers the scores of near rivals before any of these. What scores less than the
    ``min_scores`` of its type, at first or when it has been lowered, does not come in anybody's way.

    >>> spans = [np.array(x) for x in ([0, 0], [0, 1], [2, 3], [0, 0])]
    >>> [e.range for e in decode(*spans, np.array([0.6, 0.9]), count=1, types=("X",), policy="flat")[0]]
    [Span(start=1, end=3)]
    """
    spans = (sentence, start, end, label, score)
    bars = None if min_scores is None else np.array([min_scores.get(type, 0.0) for type in types])
    if isinstance(policy, SoftNms):
        spans = policy(*_high_enough(spans, bars))
        policy = policy.policy
    sentence, start, end, label, score = _high_enough(spans, bars)
    found: list[list[_Row]] = [[] for _ in range(count)]
    for where, a, b, kind, value in zip(
        sentence.tolist(), start.tolist(), end.tolist(), label.tolist(), score.tolist(), strict=True
    ):
        found[where].append((-round(value, 6), a, b, types[kind]))
    decoded = []
    for rows in found:
        kept = rows if policy == "overlapping" or len(rows) < 2 else _surest(rows, _Taken.CLASHES[policy])
        decoded.append(tuple(sorted((Entity(type, (Span(a, b),), score=-low) for low, a, b, type in kept), key=text_order)))
    return decoded


def _high_enough(spans: _Spans, bars: npt.NDArray[np.float64] | None) -> _Spans:
    """The spans that score no less than their type's bar."""
    if bars is None:
        return spans
    enough = spans[4] >= bars[spans[3]]
    return spans[0][enough], spans[1][enough], spans[2][enough], spans[3][enough], spans[4][enough]


class _Taken:
    """The spans of a sentence that are taken. A model asked for everything that it has the least belief in proposes hundreds of
    thousands: whether one clashes is seen from its own words, however many are taken."""

    def __init__(self, length: int) -> None:
        self.furthest_end = [0] * (length + 1)  # of the spans that begin at a word
        self.earliest_start = [length] * (length + 1)  # of the spans that end there
        self.is_covered = bytearray(length)

    def add(self, start: int, end: int) -> None:
        self.furthest_end[start] = max(self.furthest_end[start], end)
        self.earliest_start[end] = min(self.earliest_start[end], start)
        self.is_covered[start:end] = b"\1" * (end - start)

    def crosses(self, start: int, end: int) -> bool:
        """Whether one taken begins inside and ends behind, or begins before and ends inside."""
        inside = slice(start + 1, end)
        return max(self.furthest_end[inside], default=0) > end or min(self.earliest_start[inside], default=start) < start

    def overlaps(self, start: int, end: int) -> bool:
        return any(self.is_covered[start:end])

    CLASHES: ClassVar[dict[str, Callable[[_Taken, int, int], bool]]] = {"nested": crosses, "flat": overlaps}


def _surest(rows: list[_Row], clashes: Callable[[_Taken, int, int], bool]) -> list[_Row]:
    """The rows that remain when the surest come first, as in ``without_clashes``."""
    taken, kept = _Taken(max(row[2] for row in rows)), []
    for row in sorted(rows):
        if not clashes(taken, row[1], row[2]):
            taken.add(row[1], row[2])
            kept.append(row)
    return kept


def text_order(entity: Entity) -> tuple[int, int, str, tuple[Span, ...]]:
    """By what entities are sorted: where they begin, the longer ones first."""
    return entity.range.start, -entity.range.end, entity.type, entity.fragments


def in_text_order(found: Predictions, more: Iterable[Entity]) -> Predictions:
    """What is found with more entities at their places in the text; relations name the same entities as before.

    >>> found = Predictions((Entity("X", ((2, 3),)), Entity("Y", ((4, 5),))), (Relation("R", 0, 1),))
    >>> [(r.head, r.tail) for r in in_text_order(found, [Entity("Z", ((0, 1), (3, 4)))]).relations]
    [(1, 2)]
    """
    entities = [*found.entities, *more]
    order = sorted(range(len(entities)), key=lambda number: text_order(entities[number]))
    place = {number: at for at, number in enumerate(order)}
    relations = (replace(relation, head=place[relation.head], tail=place[relation.tail]) for relation in found.relations)
    return Predictions(tuple(entities[number] for number in order), tuple(relations))


def without_clashes(entities: Iterable[Entity], clash: Callable[[Span, Span], bool]) -> list[Entity]:
    """The entities that remain when the most probable come first and none may clash with one already there.

    >>> a, b, c = Entity("X", ((0, 2),), 0.7), Entity("Y", ((1, 3),), 0.9), Entity("Z", ((2, 3),), 0.1)
    >>> [entity.type for entity in without_clashes([a, b, c], Span.overlaps)]
    ['Y']
    >>> [entity.type for entity in without_clashes([a, b, c], Span.crosses)]
    ['Y', 'Z']
    """
    kept: list[Entity] = []
    for entity in sorted(entities, key=lambda e: (-(e.score or 0.0), e.range, e.type)):
        if not any(clash(entity.range, other.range) for other in kept):
            kept.append(entity)
    return kept
