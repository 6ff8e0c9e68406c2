"""Which of a sentence's entities are wanted where they overlap; chosen when a model is asked, whatever it was trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from spanwise.core.errors import unknown_name
from spanwise.core.types import Entity, Sentence, Span
from spanwise.decoding.decode import without_clashes
from spanwise.decoding.thresholds import without


def chosen(overlap: str) -> Callable[[Sentence], Sentence]:
    """What leaves the wanted entities of a sentence: "nested", "flat" or "outermost".

    >>> sentence = Sentence("s", ("New", "York", "Times"), tuple(
    ...     Entity(type, (span,), score) for type, span, score in [("Org", (0, 3), 0.7), ("Place", (0, 2), 0.9)]
    ... ))
    >>> [[entity.type for entity in chosen(name)(sentence).entities] for name in OVERLAPS]
    [['Org', 'Place'], ['Place'], ['Org']]
    """
    if overlap not in OVERLAPS:
        raise unknown_name("choice of overlapping entities", overlap, OVERLAPS)
    keep = OVERLAPS[overlap]

    def choose(sentence: Sentence) -> Sentence:
        if len(sentence.entities) < 2:
            return sentence
        kept = {entity for group in _touching(sentence.entities) for entity in keep(group)}
        dropped = [number for number, entity in enumerate(sentence.entities) if entity not in kept]
        return without(sentence, dropped) if dropped else sentence

    return choose


def _all(entities: Sequence[Entity]) -> Sequence[Entity]:
    return entities


def _flat(entities: Sequence[Entity]) -> Sequence[Entity]:
    """The surest first, and none that overlaps one already there, from its first word to its last."""
    return without_clashes(entities, Span.overlaps)


def _outermost(entities: Sequence[Entity]) -> Sequence[Entity]:
    """Those whose words are not all part of another with more words."""
    words = [set(entity.places) for entity in entities]
    return [entity for entity, own in zip(entities, words, strict=True) if not any(own < other for other in words)]


OVERLAPS: dict[str, Callable[[Sequence[Entity]], Sequence[Entity]]] = {
    "nested": _all,
    "flat": _flat,
    "outermost": _outermost,
}


def _touching(entities: Iterable[Entity]) -> Iterator[list[Entity]]:
    """Entities in groups, so that none overlaps one of another group: however many there are, only few are compared."""
    group: list[Entity] = []
    end = 0
    for entity in sorted(entities, key=lambda entity: entity.range):
        if entity.range.start >= end and group:
            yield group
            group = []
        group.append(entity)
        end = max(end, entity.range.end)
    yield group
