"""Decode scored spans into entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from spanwise.core.annotations import trusted_entity
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Relation, Span
from spanwise.decoding.soft_nms import SoftNms

Policy: TypeAlias = str | SoftNms
MAX_COMPARED = 64  # spans of a sentence that are compared pairwise, in a few array operations
_Ints: TypeAlias = npt.NDArray[np.int64]
_Floats: TypeAlias = npt.NDArray[np.float32]
_Spans: TypeAlias = tuple[_Ints, _Ints, _Ints, _Ints, _Floats, _Floats]  # sentence, start, end, label, score, log-odds
# Negative score and log-odds (the most probable first), start, end, type, position.
_Row: TypeAlias = tuple[float, float, int, int, str, int]


class Predictions(NamedTuple):
    """Entities and relations of one sentence."""

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
    log_odds: _Floats | None = None,
) -> list[tuple[Entity, ...]]:
    """Decode packed scored spans into the entities of ``count`` sentences, in text order.

    ``policy`` "overlapping" accepts every span. "nested" and "flat" accept the most probable first
    and drop spans that cross ("nested") or overlap ("flat") an accepted one. A ``SoftNms`` lowers
    the scores of similar spans first. Spans below the ``min_scores`` of their type, before or after
    soft-NMS, never displace others. Of spans with equal scores, rounded to 6 digits, the one with the
    higher ``log_odds`` comes first, then the one that starts earlier.

    >>> spans = [np.array(x) for x in ([0, 0], [0, 1], [2, 3], [0, 0])]
    >>> [e.range for e in decode(*spans, np.array([0.6, 0.9]), count=1, types=("X",), policy="flat")[0]]
    [Span(start=1, end=3)]
    """
    if not np.isfinite(score).all():  # before cutoffs, which nan never reaches
        raise SpanwiseError("the model computed a score that is not a finite number; its files may be damaged")
    spans = (sentence, start, end, label, score, np.zeros_like(score) if log_odds is None else log_odds)
    cutoffs = None if min_scores is None else np.array([min_scores.get(type, 0.0) for type in types])
    if isinstance(policy, SoftNms):
        spans = policy.suppress(*_above(spans, cutoffs))
        policy = policy.policy
    spans = _above(spans, cutoffs)
    if ((spans[1] < 0) | (spans[2] <= spans[1])).any():
        raise SpanwiseError("the model returned a span that is not a range of words; the end must be greater than the start")
    if policy != "overlapping":
        spans = _without_conflicts(spans, types, policy)
    # Text order, as in ``text_order``.
    ranks = np.argsort(np.argsort(np.array(types, object), kind="stable"))
    order = np.lexsort((-spans[4], ranks[spans[3]], -spans[2], spans[1], spans[0]))
    decoded: list[list[Entity]] = [[] for _ in range(count)]
    for index, first, last, kind, value in zip(*(column[order].tolist() for column in spans[:5]), strict=True):
        decoded[index].append(trusted_entity(types[kind], (Span(first, last),), round(value, 6)))
    return [tuple(entities) for entities in decoded]


def _without_conflicts(spans: _Spans, types: tuple[str, ...], policy: str) -> _Spans:
    """Drop spans in conflict with more probable ones. Only sentences with conflicts need a choice; they are few."""
    positions = np.flatnonzero(_has_conflicts(*spans[:3], policy)[spans[0]])
    by_sentence: dict[int, list[_Row]] = {}
    for index, first, last, kind, value, odds, position in zip(
        *(column[positions].tolist() for column in spans), positions.tolist(), strict=True
    ):
        by_sentence.setdefault(index, []).append((-round(value, 6), -round(odds, 3), first, last, types[kind], position))
    is_kept = np.ones(len(spans[0]), bool)
    is_kept[positions] = False
    conflicts = _AcceptedSpans.CONFLICTS[policy]
    is_kept[[row[5] for rows in by_sentence.values() for row in _accept_greedily(rows, conflicts)]] = True
    return _select(spans, is_kept)


def _has_conflicts(sentence: _Ints, start: _Ints, end: _Ints, policy: str) -> npt.NDArray[np.bool_]:
    """Whether each sentence has spans that overlap ("flat") or cross ("nested").

    A sentence of more than ``MAX_COMPARED`` spans is assumed to have crossing ones if some overlap.

    >>> columns = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 2, 4, 3, 1, 2]), np.array([2, 3, 5, 5, 3, 4])
    >>> _has_conflicts(*columns, "flat").tolist(), _has_conflicts(*columns, "nested").tolist()
    ([False, True, True], [False, False, True])
    """
    order = np.lexsort((start, sentence))
    sentence, start, end = sentence[order], start[order], end[order]
    # Positions are made larger from sentence to sentence, so that spans of different sentences never overlap.
    offset = sentence * (int(end.max(initial=0)) + 1)
    start, end = start + offset, end + offset
    count = int(sentence.max(initial=-1)) + 1
    overlaps = start[1:] < np.maximum.accumulate(end)[:-1]
    has_overlap = np.bincount(sentence[1:][overlaps], minlength=count) > 0
    if policy == "flat":
        return has_overlap
    is_compared = has_overlap[sentence]
    sentence, start, end = sentence[is_compared], start[is_compared], end[is_compared]
    spans = np.bincount(sentence, minlength=count)
    has_conflict = spans > MAX_COMPARED
    for step in range(1, min(int(spans.max(initial=0)), MAX_COMPARED)):
        crosses = (start[:-step] < start[step:]) & (start[step:] < end[:-step]) & (end[:-step] < end[step:])
        has_conflict[sentence[step:][crosses]] = True
    return has_conflict


def _above(spans: _Spans, cutoffs: npt.NDArray[np.float64] | None) -> _Spans:
    """Spans whose scores, rounded as those of entities, reach the cutoff of their label."""
    if cutoffs is None:
        return spans
    return _select(spans, spans[4].astype(np.float64).round(6) >= cutoffs[spans[3]])


def _select(spans: _Spans, mask: npt.NDArray[np.bool_]) -> _Spans:
    return spans[0][mask], spans[1][mask], spans[2][mask], spans[3][mask], spans[4][mask], spans[5][mask]


class _AcceptedSpans:
    """Accepted spans of a sentence, indexed by word.

    At a very low threshold a model proposes hundreds of thousands of spans. A conflict check reads
    only the words of the new span, so its cost does not grow with the number of accepted spans.
    """

    def __init__(self, length: int) -> None:
        self.furthest_end = [0] * (length + 1)  # of the spans that start at a word
        self.earliest_start = [length] * (length + 1)  # of the spans that end at a word
        self.is_covered = bytearray(length)

    def add(self, start: int, end: int) -> None:
        self.furthest_end[start] = max(self.furthest_end[start], end)
        self.earliest_start[end] = min(self.earliest_start[end], start)
        self.is_covered[start:end] = b"\1" * (end - start)

    def crosses(self, start: int, end: int) -> bool:
        """Whether an accepted span overlaps this one and neither contains the other."""
        inside = slice(start + 1, end)
        return max(self.furthest_end[inside], default=0) > end or min(self.earliest_start[inside], default=start) < start

    def overlaps(self, start: int, end: int) -> bool:
        return any(self.is_covered[start:end])

    CONFLICTS: ClassVar[dict[str, Callable[[_AcceptedSpans, int, int], bool]]] = {"nested": crosses, "flat": overlaps}


def _accept_greedily(rows: list[_Row], conflicts: Callable[[_AcceptedSpans, int, int], bool]) -> list[_Row]:
    """Accept the most probable rows first, as ``drop_conflicts`` does."""
    accepted_spans, accepted_rows = _AcceptedSpans(max(row[3] for row in rows)), []
    for row in sorted(rows):
        _, _, start, end, _, _ = row
        if not conflicts(accepted_spans, start, end):
            accepted_spans.add(start, end)
            accepted_rows.append(row)
    return accepted_rows


def overlap_policy(policy: Policy) -> str:
    """How a policy resolves overlaps, without soft-NMS: "overlapping", "nested" or "flat"."""
    return policy.policy if isinstance(policy, SoftNms) else policy


def text_order(entity: Entity) -> tuple[int, int, str, tuple[Span, ...]]:
    """Sort key of entities: by start, longer ones first."""
    return entity.range.start, -entity.range.end, entity.type, entity.fragments


def add_entities(predictions: Predictions, more: Iterable[Entity]) -> Predictions:
    """Insert more entities in text order; relations keep pointing at the same entities.

    >>> predictions = Predictions((Entity("X", ((2, 3),)), Entity("Y", ((4, 5),))), (Relation("R", 0, 1),))
    >>> [(r.head, r.tail) for r in add_entities(predictions, [Entity("Z", ((0, 1), (3, 4)))]).relations]
    [(1, 2)]
    """
    entities = [*predictions.entities, *more]
    order = sorted(range(len(entities)), key=lambda index: text_order(entities[index]))
    new = {old: index for index, old in enumerate(order)}
    relations = (replace(relation, head=new[relation.head], tail=new[relation.tail]) for relation in predictions.relations)
    return Predictions(tuple(entities[index] for index in order), tuple(relations))


def drop_conflicts(entities: Iterable[Entity], conflicts: Callable[[Span, Span], bool]) -> list[Entity]:
    """Accept the most probable entities first; drop those in conflict with an accepted one.

    >>> a, b, c = Entity("X", ((0, 2),), 0.7), Entity("Y", ((1, 3),), 0.9), Entity("Z", ((2, 3),), 0.1)
    >>> [entity.type for entity in drop_conflicts([a, b, c], Span.overlaps)]
    ['Y']
    >>> [entity.type for entity in drop_conflicts([a, b, c], Span.crosses)]
    ['Y', 'Z']
    """
    accepted: list[Entity] = []
    for entity in sorted(entities, key=lambda e: (-(e.score or 0.0), e.range, e.type)):
        if not any(conflicts(entity.range, other.range) for other in accepted):
            accepted.append(entity)
    return accepted
