"""Spans whose exact scores an audit needs: gold ones, and those that errors would turn them into."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from spanwise.core.types import Sentence, Span

RANDOM_SPANS = 2  # per sentence; stand for entities that were added by mistake


def neighbours(span: Span, length: int) -> list[Span]:
    """The spans that differ from a span by one word at one end, in a sentence of ``length`` words.

    >>> [tuple(span) for span in neighbours(Span(0, 2), 3)]
    [(1, 2), (0, 1), (0, 3)]
    """
    start, end = span
    moved = (Span(start - 1, end), Span(start + 1, end), Span(start, end - 1), Span(start, end + 1))
    return [other for other in moved if 0 <= other.start < other.end <= length]


def random_spans(sentences: Sequence[Sentence], seed: int) -> list[list[Span]]:
    """Up to ``RANDOM_SPANS`` spans of each sentence that overlap no entity, as wide as the corpus' entities."""
    random = Random(seed)
    widths = [entity.range.width for sentence in sentences for entity in sentence.entities if not entity.is_discontinuous]
    result = []
    for sentence in sentences:
        spans = set[Span]()
        for width in random.choices(widths, k=RANDOM_SPANS) if widths else ():
            if width <= len(sentence.words):
                start = random.randrange(len(sentence.words) - width + 1)
                span = Span(start, start + width)
                if not any(span.overlaps(entity.range) for entity in sentence.entities):
                    spans.add(span)
        result.append(sorted(spans))
    return result


def probe_spans(sentences: Sequence[Sentence], seed: int) -> list[set[Span]]:
    """The spans of all entities, their neighbours, and random spans."""
    result = []
    for sentence, others in zip(sentences, random_spans(sentences, seed), strict=True):
        spans = set(others)
        for entity in sentence.entities:
            spans |= {entity.range, *neighbours(entity.range, len(sentence.words))}
        result.append(spans)
    return result
