"""Two sides of one text made comparable: the same words, whatever tokens and sentences each was cut into."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from spanwise.core.documents import documents_of
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Link, Relation, Sentence, Span


@dataclass(frozen=True, slots=True)
class Group:
    """Gold sentences and the predicted ones of the same text: one and one, unless the two sides are cut differently.

    ``predicted`` is None when there are none.
    """

    gold: tuple[Sentence, ...]
    predicted: tuple[Sentence, ...] | None


@dataclass(frozen=True, slots=True)
class Pair:
    """A gold sentence and what was predicted for it, in the same words; None when nothing was.

    Where the words differed, they are characters now. ``originals`` are the sentences as gold has them. The ``position`` of a
    link is the number of the pair in which its tail is, or ``NOWHERE``.
    """

    gold: Sentence
    predicted: Sentence | None
    originals: tuple[Sentence, ...]


def squeezed(text: str) -> str:
    """The text without white space, which is all that two tokenisations of it share.

    >>> squeezed("NF - kappa B\\n")
    'NF-kappaB'
    """
    return "".join(text.split())


def in_step(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> list[Group]:
    """Sentences of the same text on both sides, in the smallest groups that begin and end at the same place.

    >>> one, two, both = Sentence("1", ("Hi", "!")), Sentence("2", ("Bye", "!")), Sentence("x", ("Hi!", "Bye!"))
    >>> [len(group.gold) for group in in_step([one, two, one], [both, one])]
    [2, 1]
    """
    gold_ends, predicted_ends = (list(accumulate(len(squeezed(s.text)) for s in side)) for side in (gold, predicted))
    groups: list[Group] = []
    left = right = 0
    while left < len(gold) and right < len(predicted):
        first, second = left, right
        left, right = left + 1, right + 1
        while gold_ends[left - 1] != predicted_ends[right - 1]:
            if gold_ends[left - 1] < predicted_ends[right - 1]:
                left += 1
            else:
                right += 1
        groups.append(Group(tuple(gold[first:left]), tuple(predicted[second:right])))
    if groups:  # sentences without words may be left on one side
        last = groups.pop()
        groups.append(Group((*last.gold, *gold[left:]), (*(last.predicted or ()), *predicted[right:])))
    return groups


def align(groups: Sequence[Group]) -> tuple[Pair, ...]:
    """The groups as pairs with the same words on both sides."""
    gold_documents = documents_of(sentence for group in groups for sentence in group.gold)
    documents: list[list[Hashable]] = [[next(gold_documents) for _ in group.gold] for group in groups]
    sides = (
        _resolved([group.gold for group in groups], documents),
        # What stands for a sentence of gold is of its document, however many other sentences are missing.
        _resolved(
            [group.predicted or () for group in groups],
            [[(own[0], s.document) for s in group.predicted or ()] for group, own in zip(groups, documents, strict=True)],
        ),
    )
    pairs = []
    for group, gold, predicted in zip(groups, *sides, strict=True):
        if group.predicted is None:
            pairs.append(Pair(gold[0] if len(gold) == 1 else in_characters(gold), None, group.gold))
        elif len(gold) == len(predicted) == 1 and gold[0].words == predicted[0].words:
            pairs.append(Pair(gold[0], predicted[0], group.gold))
        else:
            pairs.append(Pair(in_characters(gold), in_characters(predicted), group.gold))
    return tuple(pairs)


def in_characters(sentences: Sequence[Sentence]) -> Sentence:
    """The sentences as one, with every character, white space left out, as a word of its own.

    >>> in_characters([Sentence("s", ("can't", "go"), (Entity("Verb", ((1, 2),)),))]).entities[0].fragments
    (Span(start=5, end=7),)
    """
    characters: list[str] = []
    entities: list[Entity] = []
    relations: list[Relation] = []
    links: list[Link] = []
    for sentence in sentences:
        before = len(entities)
        places = [len(characters)]  # where each character of the text is now
        for character in sentence.text:
            if not character.isspace():
                characters.append(character)
            places.append(len(characters))
        entities += (_moved(entity, sentence, places) for entity in sentence.entities)
        relations += (
            replace(relation, head=relation.head + before, tail=relation.tail + before) for relation in sentence.relations
        )
        links += (replace(link, head=link.head + before) for link in sentence.links)
    return Sentence(
        sentences[0].id, tuple(characters), tuple(entities), tuple(relations), tuple(links), document="", position=0
    )  # fmt: skip


class Home(NamedTuple):
    """Where a character comes from: the number of its sentence, of its word there, and its place in the sentence's text."""

    sentence: int
    word: int
    at: int


def homes(sentences: Sequence[Sentence]) -> list[Home]:
    """The way back from ``in_characters``; what stands between two words goes with the first.

    >>> homes([Sentence("s", ("a", "bc"))])[1:]
    [Home(sentence=0, word=1, at=2), Home(sentence=0, word=1, at=3)]
    """
    return [
        Home(number, max(bisect_right(sentence.starts, at) - 1, 0), at)
        for number, sentence in enumerate(sentences)
        for at, character in enumerate(sentence.text)
        if not character.isspace()
    ]


def _moved(entity: Entity, sentence: Sentence, places: Sequence[int]) -> Entity:
    spans = (sentence.characters(fragment) for fragment in entity.fragments)
    fragments = tuple(Span(places[start], places[end]) for start, end in spans if places[start] < places[end])
    if not fragments:
        raise SpanwiseError(
            f"sentence {sentence.id!r}: an entity of type {entity.type!r} is white space only, "
            f"which cannot be compared with another tokenisation"
        )
    return Entity(entity.type, fragments, entity.score)


NOWHERE = sys.maxsize  # the place of a sentence that is not in the data


def _resolved(groups: Sequence[Sequence[Sentence]], documents: Sequence[Sequence[Hashable]]) -> list[list[Sentence]]:
    """The groups with links that name the number of a group and an entity in it; ``NOWHERE`` where one leads to none."""
    sides = [list(zip(group, own, strict=True)) for group, own in zip(groups, documents, strict=True)]
    # For each place in a document, the number of its group, and where its entities begin and end among the group's.
    places: dict[tuple[Hashable, int | None], tuple[int, int, int]] = {}
    for number, group in enumerate(sides):
        before = 0
        for sentence, document in group:
            places[document, sentence.position] = (number, before, before + len(sentence.entities))
            before += len(sentence.entities)

    def led(link: Link, document: Hashable) -> Link:
        number, begin, end = places.get((document, link.position), (NOWHERE, 0, 0))
        there = 0 <= link.tail < end - begin
        return replace(link, position=number if there else NOWHERE, tail=begin + link.tail if there else 0)

    return [
        [
            replace(sentence, links=tuple(led(link, document) for link in sentence.links)) if sentence.links else sentence
            for sentence, document in group
        ]
        for group in sides
    ]
