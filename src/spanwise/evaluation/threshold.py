"""Predictions above a threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from spanwise.types import Sentence


def at_least(sentences: Iterable[Sentence], threshold: float) -> Iterator[Sentence]:
    """The sentences without entities and relations of a lower score; what has no score stays, unless its entity goes.

    >>> from spanwise.types import Entity
    >>> sentence = Sentence("s", ("a", "b"), (Entity("X", ((0, 1),), 0.2), Entity("Y", ((1, 2),), 0.8)))
    >>> [entity.type for entity in next(at_least([sentence], 0.5)).entities]
    ['Y']
    """
    for sentence in sentences:
        relations = tuple(relation for relation in sentence.relations if _is_kept(relation.score, threshold))
        if len(relations) < len(sentence.relations):
            sentence = replace(sentence, relations=relations)
        low = {number for number, entity in enumerate(sentence.entities) if not _is_kept(entity.score, threshold)}
        yield sentence if not low else _without(sentence, low)


def _is_kept(score: float | None, threshold: float) -> bool:
    return score is None or score >= threshold


def _without(sentence: Sentence, dropped: set[int]) -> Sentence:
    kept = [number for number in range(len(sentence.entities)) if number not in dropped]
    new = {old: number for number, old in enumerate(kept)}
    return replace(
        sentence,
        entities=tuple(sentence.entities[number] for number in kept),
        relations=tuple(
            replace(r, head=new[r.head], tail=new[r.tail]) for r in sentence.relations if r.head in new and r.tail in new
        ),
        links=tuple(replace(link, head=new[link.head]) for link in sentence.links if link.head in new),
    )
