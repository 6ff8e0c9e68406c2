"""Predictions above a threshold, and the threshold that is best."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from spanwise.core.documents import documents_of
from spanwise.core.types import Entity, Link, Relation, Sentence

LOWEST = 0.02  # threshold that is looked at
HIGHEST = 1 - 1e-6  # that a head can have: odds must be finite
Threshold: TypeAlias = float | Mapping[str, float]  # one for all, or for types of entities and relations by name


def apply_threshold(sentences: Iterable[Sentence], threshold: Threshold) -> Iterator[Sentence]:
    """The sentences without entities and relations of a lower score; what has no score stays, unless its entity goes.

    Types that have no threshold keep everything. Relations across sentences find their entities again where others are gone.

    >>> from spanwise.core.types import Entity
    >>> sentence = Sentence("s", ("a", "b"), (Entity("X", ((0, 1),), 0.2), Entity("Y", ((1, 2),), 0.8)))
    >>> [entity.type for entity in next(apply_threshold([sentence], 0.5)).entities]
    ['Y']
    >>> [entity.type for entity in next(apply_threshold([sentence], {"Y": 0.9})).entities]
    ['X']
    """
    sentences = list(sentences)
    documents = list(documents_of(sentences))
    dropped = [{n for n, entity in enumerate(s.entities) if not _is_kept(entity, threshold)} for s in sentences]
    places = {(document, s.position): low for s, document, low in zip(sentences, documents, dropped, strict=True)}
    for sentence, document, low in zip(sentences, documents, dropped, strict=True):
        relations = tuple(relation for relation in sentence.relations if _is_kept(relation, threshold))
        links = []
        for link in sentence.links:
            gone = places.get((document, link.position), set())
            if link.tail not in gone and _is_kept(link, threshold):
                links.append(replace(link, tail=link.tail - sum(other < link.tail for other in gone)))
        if relations != sentence.relations or links != list(sentence.links):
            sentence = replace(sentence, relations=relations, links=tuple(links))
        yield without(sentence, low) if low else sentence


def lowest(threshold: Threshold) -> float:
    """The lowest that any type has; 0 leaves it to the model.

    >>> lowest({"X": 0.7, "Y": 0.0, "Z": 0.2})
    0.2
    """
    return min((bar for bar in threshold.values() if bar > 0), default=0.0) if isinstance(threshold, Mapping) else threshold


def best_threshold(scored: Iterable[tuple[float, bool]], support: int, lowest: float | None = None) -> float | None:
    """Above which score what is proposed has the best F1: half-way between two scores. None where nothing is right.

    ``scored`` are the score of each thing that is proposed and whether it is right, ``support`` is how many are in gold.
    ``lowest`` is the score above which things were proposed at all, where that is known; no threshold lies below what is known
    of.

    >>> best_threshold([(0.9, True), (0.2, False), (0.4, True), (0.7, False)], support=2)
    0.3
    """
    rows = sorted(scored, reverse=True)
    best, threshold, correct = 0.0, None, 0
    for number, (score, is_right) in enumerate(rows, 1):
        correct += is_right
        below = rows[number][0] if number < len(rows) else lowest
        f1 = 2 * correct / (number + support)
        if f1 > best and (below is None or below < score):  # of equal scores all are kept or none
            middle = score if below is None else round((score + below) / 2, 6)
            best, threshold = f1, middle if below is None or below < middle <= score else score
    return threshold


def _is_kept(one: Entity | Relation | Link, threshold: Threshold) -> bool:
    bar = threshold.get(one.type, 0.0) if isinstance(threshold, Mapping) else threshold
    return one.score is None or one.score >= bar


def without(sentence: Sentence, dropped: Collection[int]) -> Sentence:
    """The sentence without some of its entities, named by their places, and without the relations of these.

    Links of other sentences still count its entities as before.
    """
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
