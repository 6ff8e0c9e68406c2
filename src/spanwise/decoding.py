"""Scored spans to entities."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from spanwise.types import Entity, Span


def decode(
    sentence: npt.NDArray[np.int64],
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    label: npt.NDArray[np.int64],
    score: npt.NDArray[np.float32],
    *,
    count: int,
    types: tuple[str, ...],
    policy: str = "nested",
) -> list[tuple[Entity, ...]]:
    """The entities of each of ``count`` sentences, in text order, from packed scored spans.

    ``policy`` "nested" keeps every span; "flat" keeps the most probable first and drops what overlaps it.

    >>> spans = [np.array(x) for x in ([0, 0], [0, 1], [2, 3], [0, 0])]
    >>> [e.range for e in decode(*spans, np.array([0.6, 0.9]), count=1, types=("X",), policy="flat")[0]]
    [Span(start=1, end=3)]
    """
    found: list[list[Entity]] = [[] for _ in range(count)]
    for where, a, b, kind, value in zip(
        sentence.tolist(), start.tolist(), end.tolist(), label.tolist(), score.tolist(), strict=True
    ):
        found[where].append(Entity(types[kind], (Span(a, b),), score=round(value, 6)))
    if policy == "flat":
        found = [flattened(entities) for entities in found]
    return [tuple(sorted(entities, key=lambda e: (e.range.start, -e.range.end, e.type))) for entities in found]


def flattened(entities: Iterable[Entity]) -> list[Entity]:
    """The entities that remain when the most probable come first and none may overlap one already there.

    >>> a, b, c = Entity("X", ((0, 2),), 0.7), Entity("Y", ((1, 3),), 0.9), Entity("Z", ((3, 4),), 0.1)
    >>> [entity.type for entity in flattened([a, b, c])]
    ['Y', 'Z']
    """
    kept: list[Entity] = []
    for entity in sorted(entities, key=lambda e: (-(e.score or 0.0), e.range, e.type)):
        if not any(entity.range.overlaps(other.range) for other in kept):
            kept.append(entity)
    return kept
