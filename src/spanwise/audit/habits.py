"""Words that entities mostly include at their edge, or mostly leave outside, and the exceptions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spanwise.core.types import Entity, Sentence

MIN_CASES = 20  # entities next to or with the word
MAX_EXCEPTIONS = 0.2  # share of the cases


@dataclass(frozen=True)
class Habit:
    """How entities treat a word before or after their core, such as "the", "Dr." or a full stop.

    ``side`` is ``start`` or ``end``. ``inside`` counts entities that include the word there, ``outside``
    those that are next to it but exclude it. ``exceptions`` are the rarer cases: index of the sentence and entity.
    """

    word: str
    side: str
    inside: int
    outside: int
    exceptions: tuple[tuple[int, Entity], ...]

    @property
    def is_included(self) -> bool:
        """Whether most entities include the word."""
        return self.inside > self.outside


def boundary_habits(sentences: Sequence[Sentence]) -> list[Habit]:
    """The habits with few exceptions, those with the most cases per exception first.

    Words are compared without regard to case. Entities of one word are counted as outside only.
    """
    cases: defaultdict[tuple[str, str], tuple[list[tuple[int, Entity]], list[tuple[int, Entity]]]]
    cases = defaultdict(lambda: ([], []))
    for index, sentence in enumerate(sentences):
        for entity in sentence.entities:
            for side, word, is_outside in _edges(sentence, entity):
                cases[word.casefold(), side][is_outside].append((index, entity))
    habits = []
    for (word, side), (inside, outside) in cases.items():
        exceptions = min(inside, outside, key=len)
        if len(inside) + len(outside) >= MIN_CASES and 0 < len(exceptions) <= MAX_EXCEPTIONS * (len(inside) + len(outside)):
            habits.append(Habit(word, side, len(inside), len(outside), tuple(exceptions)))
    return sorted(habits, key=lambda h: (-(h.inside + h.outside) / len(h.exceptions), h.word, h.side))


def _edges(sentence: Sentence, entity: Entity) -> Iterator[tuple[str, str, bool]]:
    """The words at both edges of an entity: side, word, and whether it is outside."""
    if entity.is_discontinuous:
        return
    start, end = entity.range
    words = sentence.words
    if start > 0:
        yield "start", words[start - 1], True
    if end < len(words):
        yield "end", words[end], True
    if end - start > 1:
        yield "start", words[start], False
        yield "end", words[end - 1], False
