"""Predict long sentences in overlapping windows and merge the results.

Heads that score every pair of words need memory quadratic in the sentence length. A "sentence" of a
hundred thousand words, such as a table or a text without full stops, would not fit in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise

from spanwise.core.types import Entity, Relation, Sentence, Span

MAX_WORDS = 512  # of a window
OVERLAP = 128  # words that two windows share; wider entities may be missed at a boundary


def predict_in_windows(
    sentences: Iterable[Sentence], predict: Callable[[Iterator[Sentence]], Iterator[Sentence]]
) -> Iterator[Sentence]:  # fmt: skip
    """Apply ``predict`` to the windows of the sentences; yield one sentence per input, in order."""
    pending: deque[Sentence] = deque()

    def split() -> Iterator[Sentence]:
        for sentence in sentences:
            pending.append(sentence)
            yield from split_into_windows(sentence)

    predicted = predict(split())
    for first in predicted:
        yield from merge_windows([pending.popleft()], chain([first], predicted))


def split_into_windows(sentence: Sentence) -> list[Sentence]:
    """The windows of a long sentence as separate sentences; a short sentence is its only window."""
    ranges = window_ranges(len(sentence.words))
    if len(ranges) == 1:
        return [sentence]
    return [Sentence(f"{sentence.id}-{a}", sentence.words[a:b], pos=sentence.pos and sentence.pos[a:b]) for a, b in ranges]


def merge_windows(sentences: Iterable[Sentence], predicted: Iterator[Sentence]) -> Iterator[Sentence]:
    """Yield the sentences with the predictions of their windows (``predicted``, in order)."""
    for sentence in sentences:
        ranges = window_ranges(len(sentence.words))
        windows = list(islice(predicted, len(ranges)))
        yield windows[0] if len(windows) == 1 else join_windows(sentence, ranges, windows)


def window_ranges(length: int, max_words: int = MAX_WORDS, overlap: int = OVERLAP) -> list[Span]:
    """Ranges of at most ``max_words`` words that cover ``length`` words and overlap.

    >>> window_ranges(9, max_words=5, overlap=2)
    [Span(start=0, end=5), Span(start=3, end=8), Span(start=6, end=9)]
    >>> window_ranges(5, max_words=5, overlap=2)
    [Span(start=0, end=5)]
    """
    if length <= max_words:
        return [Span(0, length)]
    count = max(1, -(-(length - overlap) // (max_words - overlap)))
    starts = [index * (max_words - overlap) for index in range(count)]
    return [Span(start, min(start + max_words, length)) for start in starts]


def join_windows(sentence: Sentence, ranges: Sequence[Span], windows: Sequence[Sentence]) -> Sentence:
    """Join the predictions of the windows at boundaries that no entity crosses.

    Entities of two windows therefore never overlap, and properties that hold within windows (no
    crossing, no overlap) hold for the sentence.
    """
    entities = [
        [_shift(entity, span.start) for entity in window.entities] for span, window in zip(ranges, windows, strict=True)
    ]
    boundaries = [0, *_boundaries(ranges, entities), len(sentence.words)]
    joined: list[Entity] = []
    relations: list[Relation] = []
    for candidates, window, (low, high) in zip(entities, windows, pairwise(boundaries), strict=True):
        inside = [index for index, entity in enumerate(candidates) if low <= entity.range.start and entity.range.end <= high]
        new = {old: len(joined) + position for position, old in enumerate(inside)}
        joined += [candidates[index] for index in inside]
        relations += [
            replace(relation, head=new[relation.head], tail=new[relation.tail])
            for relation in window.relations
            if relation.head in new and relation.tail in new
        ]
    return replace(sentence, entities=tuple(joined), relations=tuple(relations), links=(), annotated=None)


def _shift(entity: Entity, offset: int) -> Entity:
    return replace(entity, fragments=tuple(Span(start + offset, end + offset) for start, end in entity.fragments))


def _boundaries(ranges: Sequence[Span], entities: Sequence[Sequence[Entity]]) -> Iterator[int]:
    """Boundaries between windows: inside no entity, closest to the middle of the overlap.

    If entities cover the whole overlap, those across the boundary are dropped: the boundary is where the sum of
    their scores is lowest. An entity at the edge of a window may have been cut there, so it is dropped, too.
    """
    for windows in pairwise(zip(ranges, entities, strict=True)):
        (one, _), (other, _) = windows
        middle = (other.start + one.end) // 2
        for edge in (0, 1):  # whether entities at the edge of their window count as crossing it
            dropped = dict.fromkeys(range(other.start, one.end + 1), 0.0)  # the scores of the entities across a position
            for window, predicted in windows:
                for entity in predicted:
                    start = entity.range.start + 1 - edge * (entity.range.start == window.start)
                    end = entity.range.end + edge * (entity.range.end == window.end)
                    for position in range(max(start, other.start), min(end, one.end + 1)):
                        dropped[position] += 1.0 if entity.score is None else entity.score
            boundary = min(dropped, key=lambda position: (dropped[position], abs(position - middle)))
            if not dropped[boundary]:
                break
        yield boundary
