"""Scored spans to entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from spanwise.soft_nms import SoftNms
from spanwise.types import Entity, Relation, Span

Policy: TypeAlias = str | SoftNms
CLASHES: dict[str, Callable[[Span, Span], bool]] = {"nested": Span.crosses, "flat": Span.overlaps}


class Found(NamedTuple):
    """What is found in a sentence."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...] = ()


def decode(
    sentence: npt.NDArray[np.int64],
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    label: npt.NDArray[np.int64],
    score: npt.NDArray[np.float32],
    *,
    count: int,
    types: tuple[str, ...],
    policy: Policy = "nested",
) -> list[tuple[Entity, ...]]:
    """The entities of each of ``count`` sentences, in text order, from packed scored spans.

    ``policy`` "overlapping" keeps every span. "nested" and "flat" take the most probable first and drop what crosses, or what
    overlaps, one already taken. A ``SoftNms`` lowers the scores of near rivals before any of these.

    >>> spans = [np.array(x) for x in ([0, 0], [0, 1], [2, 3], [0, 0])]
    >>> [e.range for e in decode(*spans, np.array([0.6, 0.9]), count=1, types=("X",), policy="flat")[0]]
    [Span(start=1, end=3)]
    """
    if isinstance(policy, SoftNms):
        sentence, start, end, label, score = policy(sentence, start, end, label, score)
        policy = policy.policy
    found: list[list[Entity]] = [[] for _ in range(count)]
    for where, a, b, kind, value in zip(
        sentence.tolist(), start.tolist(), end.tolist(), label.tolist(), score.tolist(), strict=True
    ):
        found[where].append(Entity(types[kind], (Span(a, b),), score=round(value, 6)))
    if policy != "overlapping":
        clash = CLASHES[policy]
        found = [without_clashes(entities, clash) if len(entities) > 1 else entities for entities in found]
    return [tuple(sorted(entities, key=text_order)) for entities in found]


def text_order(entity: Entity) -> tuple[int, int, str, tuple[Span, ...]]:
    """By what entities are sorted: where they begin, the longer ones first."""
    return entity.range.start, -entity.range.end, entity.type, entity.fragments


def in_text_order(found: Found, more: Iterable[Entity]) -> Found:
    """What is found with more entities at their places in the text; relations name the same entities as before.

    >>> found = Found((Entity("X", ((2, 3),)), Entity("Y", ((4, 5),))), (Relation("R", 0, 1),))
    >>> [(r.head, r.tail) for r in in_text_order(found, [Entity("Z", ((0, 1), (3, 4)))]).relations]
    [(1, 2)]
    """
    entities = [*found.entities, *more]
    order = sorted(range(len(entities)), key=lambda number: text_order(entities[number]))
    place = {number: at for at, number in enumerate(order)}
    relations = (replace(relation, head=place[relation.head], tail=place[relation.tail]) for relation in found.relations)
    return Found(tuple(entities[number] for number in order), tuple(relations))


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
