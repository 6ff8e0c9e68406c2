"""Partial annotation: which spans and types of a sentence were annotated completely.

``Sentence.annotated`` holds ranges of words or entity types. A span is *known* if it lies inside one
of the ranges, or if its type is one of the types: if it has no entity there, it is none. Everything
else is *open*: it may be an entity without a mark. The entities of a sentence are always known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from spanwise.core.annotations import Entity, Relation, Span
from spanwise.core.counting import counted

if TYPE_CHECKING:
    from spanwise.core.sentence import Sentence


def check_annotated(annotated: Iterable[Any], length: int) -> tuple[Span, ...] | tuple[str, ...]:
    """Check the marks of a sentence of ``length`` words and sort its ranges.

    >>> check_annotated([[4, 6], [0, 2]], 6)
    (Span(start=0, end=2), Span(start=4, end=6))
    """
    if isinstance(annotated, str):
        raise ValueError(f"annotated must be a list of word ranges or of types, not the string {annotated!r:.60}")
    items = list(annotated)
    if all(isinstance(item, str) for item in items):
        if "" in items:
            raise ValueError("annotated: a type is empty")
        return tuple(dict.fromkeys(items))
    if not all(isinstance(item, list | tuple) and len(item) == 2 for item in items):
        raise ValueError("annotated must hold either word ranges, as in [[0, 5]], or types, not both")
    for start, end in items:
        if type(start) is not int or type(end) is not int or not 0 <= start < end <= length:
            raise ValueError(
                f"annotated: [{start!r:.30}, {end!r:.30}] is not a half-open range of the {counted(length, 'word')}"
            )
    return tuple(sorted(Span(*item) for item in items))


def known_types(sentence: Sentence) -> tuple[str, ...] | None:
    """The types to which a partial annotation is limited; None if it is complete or limited to ranges."""
    marks = sentence.annotated
    return None if not marks or not isinstance(marks[0], str) else marks


def known_ends(sentence: Sentence) -> list[int]:
    """For each word, the end of the longest span from it that is known; 0 if there is none.

    Ranges that touch or overlap count as one.

    >>> from spanwise.core.sentence import Sentence
    >>> known_ends(Sentence("s", tuple("abcdef"), annotated=((0, 2), (2, 3), (4, 6))))
    [3, 3, 3, 0, 6, 6]
    """
    length = len(sentence.words)
    if sentence.annotated is None or known_types(sentence) is not None:
        return [length] * length
    ends, reach, first = [0] * length, 0, 0
    for start, end in (*sentence.annotated, (length + 1, length + 1)):
        if start > reach:  # a new part: the one before it is complete
            ends[first:reach] = [reach] * (reach - first)
            first = start
        reach = max(reach, end)
    return ends


def is_known(sentence: Sentence, entity: Entity, ends: Sequence[int]) -> bool:
    """Whether an annotator would have marked this entity; ``ends`` are the sentence's ``known_ends``."""
    types = known_types(sentence)
    span = entity.range
    return (types is None or entity.type in types) and span.end <= ends[span.start]


def kept_entities(gold: Sentence, predicted: Sentence) -> dict[int, int]:
    """Map the old index of each predicted entity to its new index, without those that gold leaves open.

    Predictions that equal an entity of gold are never open.
    """
    if gold.annotated is None:
        return {index: index for index in range(len(predicted.entities))}
    ends, entities = known_ends(gold), set(gold.entities)
    kept = (
        index for index, entity in enumerate(predicted.entities) if entity in entities or is_known(gold, entity, ends)
    )  # fmt: skip
    return {old: new for new, old in enumerate(kept)}


def without_open(gold: Sentence, predicted: Sentence) -> Sentence:
    """The prediction without entities that gold leaves open, and without relations that it cannot judge.

    Predictions that equal an entity of gold stay. Relations between known entities stay if all of the
    sentence was annotated for their types; others stay only if gold has them. Links, which need both
    sentences, are dropped.

    >>> from spanwise.core.sentence import Sentence
    >>> gold = Sentence("s", ("in", "Oslo", "or", "Rome"), annotated=((0, 2),))
    >>> predicted = Sentence("s", gold.words, (Entity("Place", ((1, 2),)), Entity("Place", ((3, 4),))))
    >>> [entity.range for entity in without_open(gold, predicted).entities]
    [Span(start=1, end=2)]
    """
    if gold.annotated is None:
        return predicted
    ends, new = known_ends(gold), kept_entities(gold, predicted)
    gold_relations = {_ends_of(gold, relation) for relation in gold.relations}
    relations = tuple(
        Relation(relation.type, new[relation.head], new[relation.tail], relation.score, relation.extra)
        for relation in predicted.relations
        if relation.head in new and relation.tail in new
        and (_is_known_pair(predicted, relation, ends, gold) or _ends_of(predicted, relation) in gold_relations)
    )  # fmt: skip
    return predicted.with_predictions(tuple(predicted.entities[old] for old in new), relations)


def _ends_of(sentence: Sentence, relation: Relation) -> tuple[str, Entity, Entity]:
    return relation.type, sentence.entities[relation.head], sentence.entities[relation.tail]


def _is_known_pair(sentence: Sentence, relation: Relation, ends: Sequence[int], gold: Sentence) -> bool:
    """Whether both entities lie in one annotated range, where their relation would have been marked."""
    if known_types(gold) is not None:
        return False
    first, second = sentence.entities[relation.head].range, sentence.entities[relation.tail].range
    start, end = min(first.start, second.start), max(first.end, second.end)
    return end <= ends[start]
