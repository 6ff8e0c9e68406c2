"""Sentences of any length: what is too long to be judged at once is read in windows, and what is found there is put together.

Heads that score every pair of words need memory that grows with the square of a sentence's length. A "sentence" of a hundred
thousand words, a table or a text without full stops say, would need a thousand times what a machine has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise

from spanwise.core.types import Entity, Relation, Sentence, Span

LONGEST = 512  # words that are judged at once
OVERLAP = 128  # words that two windows share: wider entities may be missed where windows meet


def in_pieces(
    sentences: Iterable[Sentence], predict: Callable[[Iterator[Sentence]], Iterator[Sentence]]
) -> Iterator[Sentence]:  # fmt: skip
    """What ``predict`` makes of the sentences, the long ones in windows; as many sentences come out as went in, in order."""
    waiting: deque[Sentence] = deque()

    def cut() -> Iterator[Sentence]:
        for sentence in sentences:
            waiting.append(sentence)
            yield from pieces_of(sentence)

    found = predict(cut())
    for first in found:
        yield from put_together([waiting.popleft()], chain([first], found))


def pieces_of(sentence: Sentence) -> list[Sentence]:
    """The sentence, or, where it is too long to be judged at once, its windows as sentences of their own."""
    ranges = windows(len(sentence.words))
    if len(ranges) == 1:
        return [sentence]
    return [Sentence(f"{sentence.id}-{a}", sentence.words[a:b], pos=sentence.pos and sentence.pos[a:b]) for a, b in ranges]


def put_together(sentences: Iterable[Sentence], found: Iterator[Sentence]) -> Iterator[Sentence]:
    """The sentences with what was found in their pieces, which come one after another."""
    for sentence in sentences:
        ranges = windows(len(sentence.words))
        own = list(islice(found, len(ranges)))
        yield own[0] if len(own) == 1 else joined(sentence, ranges, own)


def windows(length: int, longest: int = LONGEST, overlap: int = OVERLAP) -> list[Span]:
    """Ranges of at most ``longest`` words that cover so many words, each sharing ``overlap`` with the next.

    >>> windows(9, longest=5, overlap=2)
    [Span(start=0, end=5), Span(start=3, end=8), Span(start=6, end=9)]
    >>> windows(5, longest=5, overlap=2)
    [Span(start=0, end=5)]
    """
    count = max(1, -(-(length - overlap) // (longest - overlap)))
    starts = [number * (longest - overlap) for number in range(count)]
    return [Span(start, min(start + longest, length)) for start in starts]


def joined(sentence: Sentence, ranges: Sequence[Span], found: Sequence[Sentence]) -> Sentence:
    """The sentence with what its windows have, each up to a border that no entity crosses.

    So entities of two windows never overlap, and whatever holds within windows (no crossings, no overlaps) holds for the whole.
    """
    entities = [[_moved(entity, place.start) for entity in one.entities] for place, one in zip(ranges, found, strict=True)]
    borders = [0, *_borders(ranges, entities), len(sentence.words)]
    kept: list[Entity] = []
    relations: list[Relation] = []
    for own, one, (low, high) in zip(entities, found, pairwise(borders), strict=True):
        inside = {number: entity for number, entity in enumerate(own) if low <= entity.range.start and entity.range.end <= high}
        place = {number: len(kept) + at for at, number in enumerate(inside)}
        kept += inside.values()
        relations += [
            replace(relation, head=place[relation.head], tail=place[relation.tail])
            for relation in one.relations
            if relation.head in place and relation.tail in place
        ]
    return replace(sentence, entities=tuple(kept), relations=tuple(relations), links=())


def _moved(entity: Entity, by: int) -> Entity:
    return replace(entity, fragments=tuple(Span(start + by, end + by) for start, end in entity.fragments))


def _borders(ranges: Sequence[Span], entities: Sequence[Sequence[Entity]]) -> Iterator[int]:
    """Where each window ends for the next one to go on: in what both have read, nearest to its middle, inside no entity."""
    for (one, other), (left, right) in zip(pairwise(ranges), pairwise(entities), strict=True):
        shared = Span(other.start, one.end)
        middle = (shared.start + shared.end) // 2
        taken = {
            place
            for entity in (*left, *right)
            for place in range(max(entity.range.start + 1, shared.start), min(entity.range.end, shared.end + 1))
        }
        free = [place for place in range(shared.start, shared.end + 1) if place not in taken]
        yield min(free, key=lambda place: abs(place - middle), default=middle)
