"""Align gold and predicted sentences that were tokenised or split differently."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from spanwise.core.documents import document_keys
from spanwise.core.errors import SpanwiseError
from spanwise.core.other_words import without_whitespace
from spanwise.core.partial import known_types
from spanwise.core.types import Entity, Link, Relation, Sentence, Span
from spanwise.evaluation.open_predictions import drop_open

UNRESOLVED = sys.maxsize  # the position of a link whose tail is not in the data


@dataclass(frozen=True, slots=True)
class SentenceGroup:
    """Gold and predicted sentences of the same text: one each, unless the two sides are split differently.

    ``predicted`` is None if there is no prediction for the text.
    """

    gold: tuple[Sentence, ...]
    predicted: tuple[Sentence, ...] | None


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A gold sentence and its prediction over the same words; ``predicted`` is None if it is missing.

    If the two sides were tokenised or split differently, the words are single characters. Predictions
    that a partially annotated gold sentence leaves open are dropped: they are neither right nor wrong.
    ``originals`` holds the unchanged gold sentences. The ``position`` of a link is the index of the
    pair with its tail, or ``UNRESOLVED``.
    """

    gold: Sentence
    predicted: Sentence | None
    originals: tuple[Sentence, ...]


def align_sentences(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[SentenceGroup]:
    """Split both sides into the smallest groups that cover the same text.

    >>> one, two, both = Sentence("1", ("Hi", "!")), Sentence("2", ("Bye", "!")), Sentence("x", ("Hi!", "Bye!"))
    >>> [len(group.gold) for group in align_sentences([one, two, one], [both, one])]
    [2, 1]
    """
    gold_ends, predicted_ends = (
        list(accumulate(len(without_whitespace(sentence.text)) for sentence in side)) for side in (gold, predicted)
    )
    groups: list[SentenceGroup] = []
    gold_end = predicted_end = 0
    while gold_end < len(gold) and predicted_end < len(predicted):
        gold_start, predicted_start = gold_end, predicted_end
        gold_end, predicted_end = gold_end + 1, predicted_end + 1
        while gold_ends[gold_end - 1] != predicted_ends[predicted_end - 1]:
            if gold_ends[gold_end - 1] < predicted_ends[predicted_end - 1]:
                gold_end += 1
            else:
                predicted_end += 1
        groups.append(SentenceGroup(tuple(gold[gold_start:gold_end]), tuple(predicted[predicted_start:predicted_end])))
    if groups:  # sentences without words may remain on one side
        last = groups.pop()
        groups.append(
            SentenceGroup((*last.gold, *gold[gold_end:]), (*(last.predicted or ()), *predicted[predicted_end:])),
        )
    return groups


def pair_groups(groups: Sequence[SentenceGroup]) -> tuple[SentencePair, ...]:
    """Turn groups into pairs with the same words on both sides."""
    gold_documents = document_keys(sentence for group in groups for sentence in group.gold)
    documents: list[list[Hashable]] = [[next(gold_documents) for _ in group.gold] for group in groups]
    # A prediction belongs to the document of its gold sentence, even if other sentences are missing.
    predicted_documents: list[list[Hashable]] = [
        [(keys[0], sentence.document) for sentence in group.predicted or ()]
        for group, keys in zip(groups, documents, strict=True)
    ]
    gold_sides = _resolve_links([group.gold for group in groups], documents)
    predicted_sides = _resolve_links([group.predicted or () for group in groups], predicted_documents)
    sides: list[tuple[Sentence, Sentence | None]] = []
    for group, gold, predicted in zip(groups, gold_sides, predicted_sides, strict=True):
        if group.predicted is None:
            sides.append((gold[0] if len(gold) == 1 else to_characters(gold), None))
        elif len(gold) == len(predicted) == 1 and gold[0].words == predicted[0].words:
            sides.append((gold[0], predicted[0]))
        else:
            sides.append((to_characters(gold), to_characters(predicted)))
    known = drop_open([gold for gold, _ in sides], [predicted for _, predicted in sides])
    rows = zip(groups, sides, known, strict=True)
    return tuple(SentencePair(gold, predicted, group.gold) for group, (gold, _), predicted in rows)


def to_characters(sentences: Sequence[Sentence]) -> Sentence:
    """Join sentences into one whose words are the characters of the text, without white space.

    >>> to_characters([Sentence("s", ("can't", "go"), (Entity("Verb", ((1, 2),)),))]).entities[0].fragments
    (Span(start=5, end=7),)
    """
    characters: list[str] = []
    entities: list[Entity] = []
    relations: list[Relation] = []
    links: list[Link] = []
    ranges: list[Span] = []
    for sentence in sentences:
        first_entity = len(entities)
        offsets = [len(characters)]  # the index of each character of the text among ``characters``
        for character in sentence.text:
            if not character.isspace():
                characters.append(character)
            offsets.append(len(characters))
        marks = (Span(0, len(sentence.words)),) if sentence.annotated is None else sentence.annotated
        spans = (sentence.characters(mark) for mark in marks if isinstance(mark, Span) and mark.end > mark.start)
        ranges += (Span(offsets[start], offsets[end]) for start, end in spans if offsets[start] < offsets[end])
        entities += (_entity_to_characters(entity, sentence, offsets) for entity in sentence.entities)
        relations += (
            replace(relation, head=relation.head + first_entity, tail=relation.tail + first_entity)
            for relation in sentence.relations
        )
        links += (replace(link, head=link.head + first_entity) for link in sentence.links)
    return Sentence(
        sentences[0].id, tuple(characters), tuple(entities), tuple(relations), tuple(links), document="", position=0,
        annotated=_joined_marks(sentences, ranges),
    )  # fmt: skip


def _joined_marks(sentences: Sequence[Sentence], ranges: Sequence[Span]) -> tuple[Span, ...] | tuple[str, ...] | None:
    """The marks of joined sentences: None if all are complete, their types if all have the same, else ``ranges``."""
    if all(sentence.annotated is None for sentence in sentences):
        return None
    types = known_types(sentences[0])
    if types is not None and all(sentence.annotated == types for sentence in sentences):
        return types
    return tuple(ranges)


class CharacterOrigin(NamedTuple):
    """The origin of a character: indices of its sentence and word, and its offset in the sentence's text."""

    sentence: int
    word: int
    offset: int


def character_origins(sentences: Sequence[Sentence]) -> list[CharacterOrigin]:
    """Map each word of ``to_characters(sentences)`` to its origin.

    Characters between two words belong to the first of them.

    >>> character_origins([Sentence("s", ("a", "bc"))])[1:]
    [CharacterOrigin(sentence=0, word=1, offset=2), CharacterOrigin(sentence=0, word=1, offset=3)]
    """
    return [
        CharacterOrigin(index, max(bisect_right(sentence.starts, offset) - 1, 0), offset)
        for index, sentence in enumerate(sentences)
        for offset, character in enumerate(sentence.text)
        if not character.isspace()
    ]


def _entity_to_characters(entity: Entity, sentence: Sentence, offsets: Sequence[int]) -> Entity:
    spans = (sentence.characters(fragment) for fragment in entity.fragments)
    fragments = tuple(Span(offsets[start], offsets[end]) for start, end in spans if offsets[start] < offsets[end])
    if not fragments:
        raise SpanwiseError(
            f"sentence {sentence.id!r}: an entity of type {entity.type!r} consists of white space only "
            "and cannot be compared with another tokenisation"
        )
    return Entity(entity.type, fragments, entity.score)


def _resolve_links(groups: Sequence[Sequence[Sentence]], documents: Sequence[Sequence[Hashable]]) -> list[list[Sentence]]:
    """Rewrite links: the position becomes a group index (or ``UNRESOLVED``), the tail an entity index in that group."""
    sides = [list(zip(group, keys, strict=True)) for group, keys in zip(groups, documents, strict=True)]
    # For each position in a document: the index of its group, and its range of entities in that group.
    locations: dict[tuple[Hashable, int | None], tuple[int, int, int]] = {}
    for index, group in enumerate(sides):
        first_entity = 0
        for sentence, document in group:
            locations[document, sentence.position] = (index, first_entity, first_entity + len(sentence.entities))
            first_entity += len(sentence.entities)

    def resolve(link: Link, document: Hashable) -> Link:
        index, start, end = locations.get((document, link.position), (UNRESOLVED, 0, 0))
        if 0 <= link.tail < end - start:
            return replace(link, position=index, tail=start + link.tail)
        return replace(link, position=UNRESOLVED, tail=0)

    return [
        [
            replace(sentence, links=tuple(resolve(link, document) for link in sentence.links)) if sentence.links else sentence
            for sentence, document in group
        ]
        for group in sides
    ]
