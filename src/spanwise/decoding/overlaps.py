"""Policies for overlapping entities, chosen at prediction time: nested, flat or outermost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from spanwise.core.errors import unknown_name
from spanwise.core.types import Entity, Sentence, Span
from spanwise.decoding.decode import drop_conflicts
from spanwise.decoding.thresholds import drop_entities


def overlap_filter(overlap: str) -> Callable[[Sentence], Sentence]:
    """Return a function that drops the entities of a sentence that the policy does not allow.

    >>> sentence = Sentence("s", ("New", "York", "Times"), tuple(
    ...     Entity(type, (span,), score) for type, span, score in [("Org", (0, 3), 0.7), ("Place", (0, 2), 0.9)]
    ... ))
    >>> [[entity.type for entity in overlap_filter(name)(sentence).entities] for name in OVERLAPS]
    [['Org', 'Place'], ['Place'], ['Org']]
    """
    if overlap not in OVERLAPS:
        raise unknown_name("overlap policy", overlap, OVERLAPS)
    select = OVERLAPS[overlap]
    if select is _all:
        return lambda sentence: sentence

    def apply(sentence: Sentence) -> Sentence:
        if len(sentence.entities) < 2:
            return sentence
        selected = {entity for group in _overlapping_groups(sentence.entities) for entity in select(group)}
        dropped = [index for index, entity in enumerate(sentence.entities) if entity not in selected]
        return drop_entities(sentence, dropped) if dropped else sentence

    return apply


def _all(entities: Sequence[Entity]) -> Sequence[Entity]:
    return entities


def _flat(entities: Sequence[Entity]) -> Sequence[Entity]:
    """The most probable entities whose ranges, from first word to last, do not overlap."""
    return drop_conflicts(entities, Span.overlaps)


def _outermost(entities: Sequence[Entity]) -> Sequence[Entity]:
    """Entities whose words are not a proper subset of another entity's words."""
    words = [set(entity.word_indices) for entity in entities]
    return [entity for entity, subset in zip(entities, words, strict=True) if not any(subset < other for other in words)]


OVERLAPS: dict[str, Callable[[Sequence[Entity]], Sequence[Entity]]] = {
    "nested": _all,
    "flat": _flat,
    "outermost": _outermost,
}


def _overlapping_groups(entities: Iterable[Entity]) -> Iterator[list[Entity]]:
    """Group entities so that no two groups overlap. Comparing within groups keeps the cost low."""
    group: list[Entity] = []
    end = 0
    for entity in sorted(entities, key=lambda entity: entity.range):
        if entity.range.start >= end and group:
            yield group
            group = []
        group.append(entity)
        end = max(end, entity.range.end)
    yield group
