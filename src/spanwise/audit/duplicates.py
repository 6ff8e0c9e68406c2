"""Sentences that are almost equal but have different labels."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from spanwise.core.partial import is_known, known_ends
from spanwise.core.types import Entity, Sentence

MIN_WORDS = 6  # shorter sentences that differ in a word are not near-duplicates
MAX_GROUP = 20  # sentences that share all words but one; larger groups are patterns, such as "Table 1"
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class ConflictingPair:
    """Two similar sentences, by index, and the entities that only one of them has."""

    first: int
    second: int
    only_first: tuple[Entity, ...]
    only_second: tuple[Entity, ...]


def conflicting_pairs(sentences: Sequence[Sentence]) -> list[ConflictingPair]:
    """Pairs of near-duplicates whose entities differ.

    Two sentences are near-duplicates if they have the same number of words and differ in at most one of
    them, without regard to case and to the values of numbers. Entities that contain the word in which the
    sentences differ are not compared, nor are those that the other sentence leaves open.
    """
    groups: defaultdict[int, list[int]] = defaultdict(list)
    normalised = [tuple(_DIGITS.sub("0", word.casefold()) for word in sentence.words) for sentence in sentences]
    for index, words in enumerate(normalised):
        groups[hash(words)].append(index)
        for key in _keys_without_a_word(words) if len(words) >= MIN_WORDS else ():
            groups[key].append(index)
    seen: set[tuple[int, int]] = set()
    result = []
    for group in groups.values():
        for pair in _pairs(group) if 1 < len(group) <= MAX_GROUP else ():
            if pair not in seen:
                seen.add(pair)
                if (conflict := _compare(sentences, normalised, *pair)) is not None:
                    result.append(conflict)
    return sorted(result, key=lambda pair: (pair.first, pair.second))


def _keys_without_a_word(words: Sequence[str]) -> Iterator[int]:
    """A key for each word, which sentences share if they differ in this word alone."""
    before = list(accumulate(words, _extend, initial=0))
    after = list(accumulate(reversed(words), _extend, initial=0))[::-1]
    return (hash((gap, before[gap], after[gap + 1])) for gap in range(len(words)))


def _extend(key: int, word: str) -> int:
    """The key of a sequence with one more word, from that of the sequence."""
    return hash((key, word))


def _pairs(group: Sequence[int]) -> Iterator[tuple[int, int]]:
    for position, second in enumerate(group):
        for first in group[:position]:
            yield first, second


def _compare(
    sentences: Sequence[Sentence], normalised: Sequence[tuple[str, ...]], first: int, second: int
) -> ConflictingPair | None:  # fmt: skip
    if len(normalised[first]) != len(normalised[second]):
        return None
    words = zip(normalised[first], normalised[second], strict=True)
    different = {index for index, (one, two) in enumerate(words) if one != two}
    if len(different) > 1:
        return None
    entities = [
        {entity for entity in sentences[index].entities if different.isdisjoint(entity.word_indices)}
        for index in (first, second)
    ]
    only_first, only_second = (
        _known(sentences[other], mine - theirs)
        for mine, theirs, other in ((entities[0], entities[1], second), (entities[1], entities[0], first))
    )
    return ConflictingPair(first, second, only_first, only_second) if only_first or only_second else None


def _known(sentence: Sentence, entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """The entities that would have been annotated in a sentence with the same words, in order."""
    ends = known_ends(sentence)
    known = (entity for entity in entities if is_known(sentence, entity, ends))
    return tuple(sorted(known, key=lambda entity: (entity.fragments, entity.type)))
