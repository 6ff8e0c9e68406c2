"""What the heads that judge spans share: which gold they learn from, what is out of their reach, how they are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, field_validator
from torch import Tensor

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence, Span
from spanwise.decoding.fragments import discontinuous_types, in_fragments
from spanwise.heads.base import Head, HeadSettings, Labels
from spanwise.heads.memo import Ints, Memo
from spanwise.losses.smoothing import SoftSpans, smoothed


class SpanSettings(HeadSettings):
    """Widest span and decoding; both may be left to the training data."""

    coverage: ClassVar[float | None] = None  # percent of the training entities that an automatic width covers; None: all widths
    several_types: ClassVar[bool] = False  # whether a span may have several types at once

    max_width: int | None = Field(default=None, ge=1)  # words
    # flat: no two entities overlap; nested: none cross; overlapping: anything goes; auto: what the training entities keep to
    decoding: Literal["auto", "overlapping", "nested", "flat"] = "auto"
    # Types whose entities may have several fragments, see heads/discontinuous.py; auto: those that do in training; false: none
    discontinuous: Literal["auto", False] | tuple[str, ...] = "auto"

    @field_validator("discontinuous", mode="before")
    @classmethod
    def _types(cls, value: object) -> object:
        if value != "auto" and value is not False and not isinstance(value, list | tuple):
            raise ValueError("expected auto, false or a list of types")
        return value

    def fitted(self, sentences: Sequence[Sentence]) -> Self:
        """With what is open settled by the entities of the sentences, if there are any.

        Width and decoding are those of the contiguous entities, where there are none, of their fragments; and fragments that
        are to be found are no wider.

        >>> from spanwise.core.types import Entity
        >>> SpanSettings().fitted([Sentence("s1", ("a", "b", "c"), (Entity("X", ((0, 2),)),))]).decoding
        'flat'
        >>> SpanSettings().fitted([Sentence("s1", ("a", "b", "c"), (Entity("X", ((0, 1), (2, 3))),))]).discontinuous
        ('X',)
        """
        spans = whole_spans(sentences)
        if not any(spans):
            return self
        update: dict[str, object] = {}
        types = discontinuous_types(sentences) if self.discontinuous == "auto" else self.fragmented
        if self.discontinuous == "auto":
            update["discontinuous"] = types or False
        if self.max_width is None and self.coverage is not None:
            fragments = [[part for entity in in_fragments(one, types) for part in entity.fragments] for one in sentences]
            widths = [[span.width for found in kind for span in found] for kind in (spans, fragments)]
            update["max_width"] = max(covering(own, self.coverage) for own in widths if own)
        if self.decoding == "auto":
            several = list if self.several_types else set
            if any(uncrossed(found) < len(set(found)) for found in spans):
                update["decoding"] = "overlapping"
            else:
                update["decoding"] = "nested" if any(apart(found) < len(several(found)) for found in spans) else "flat"
        return self.model_copy(update=update)

    @property
    def fragmented(self) -> tuple[str, ...]:
        return self.discontinuous if isinstance(self.discontinuous, tuple) else ()


def packed_rows(known: Sequence[Ints]) -> dict[str, Tensor]:
    """Rows of start, end and label of each sentence, as columns, and the ``sentence`` that each is of."""
    rows = np.concatenate([*known, np.empty((0, 3), np.int64)])
    names = ("start", "end", "label")
    columns = {name: torch.from_numpy(np.ascontiguousarray(rows[:, at])) for at, name in enumerate(names)}
    return {"sentence": torch.from_numpy(owners(known)), **columns}


class SpanHead(Head):
    """A head for contiguous spans of at most ``max_width`` words, or of any width where that is None."""

    settings: SpanSettings

    def __init__(self, labels: Labels, settings: SpanSettings) -> None:
        super().__init__(labels, settings)
        if settings.decoding == "auto" or (settings.max_width is None and settings.coverage is not None):
            raise SpanwiseError("the span width or the decoding is still open: settle them with settings.fitted(sentences)")
        self.max_width, self.decoding = settings.max_width, settings.decoding
        self._place = {kind: place for place, kind in enumerate(labels.entities)}
        self._gold = Memo(self._gold_rows)

    def gold(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """The gold in reach, packed: ``sentence``, ``start``, ``end`` and ``label``."""
        return packed_rows([self._gold(sentence) for sentence in sentences])

    def out_of_reach(self, sentence: Sentence) -> int:
        """Entities too wide, discontinuous, of unknown type or, as the head may be, of a second type or overlapping."""
        rows = self.reachable(sentence)
        spans = {Span(*row) for row in rows[:, :2].tolist()}
        lost = 0 if self.settings.several_types else len(rows) - len(spans)
        if self.settings.decoding == "flat":
            lost = len(rows) - apart(spans)
        elif self.settings.decoding == "nested":
            lost += len(spans) - uncrossed(spans)
        return len(set(sentence.entities)) - len(rows) + lost

    def reachable(self, sentence: Sentence) -> Ints:
        """Start, end and label of each gold entity that could be predicted if it were the only one: [n, 3]."""
        return self._gold(sentence)

    def length(self, sentence: Sentence) -> int:
        """In the units that spans are counted in: words."""
        return len(sentence.words)

    def _gold_rows(self, sentence: Sentence) -> Ints:
        """Start, end and label of each gold entity that is contiguous, narrow enough and of a known type: [n, 3]."""
        widest = len(sentence.words) if self.max_width is None else self.max_width
        rows = {
            (*entity.range, self._place[entity.type])
            for entity in sentence.entities
            if not entity.is_discontinuous and entity.range.width <= widest and entity.type in self._place
        }
        return np.array(sorted(rows), np.int64).reshape(-1, 3)


class SoftmaxSettings(SpanSettings):
    """Boundary smoothing, for every head that gives a span one class."""

    smoothing: float = Field(default=0.0, ge=0.0, lt=1.0)  # epsilon: how much of a gold span's probability its neighbours get
    smoothing_distance: int = Field(default=1, ge=1)  # D: how many words away the farthest of them is


class SoftmaxHead(SpanHead):
    """A head that gives each span one of the types or NONE, which is the last of C + 1 classes.

    A span with several gold types learns each with an equal part, for it can only have one: what is over is out of reach.
    """

    settings: SoftmaxSettings

    def __init__(self, labels: Labels, settings: SoftmaxSettings) -> None:
        super().__init__(labels, settings)
        self.none = len(labels.entities)
        self._soft = Memo(self._soft_spans)

    def soft_gold(self, sentences: Sequence[Sentence]) -> tuple[Ints, SoftSpans]:
        """The smoothed gold of a batch, packed: the sentence of each row, and the rows."""
        known = [self._soft(sentence) for sentence in sentences]
        columns = (np.concatenate([*column, np.empty(0, np.int64)]) for column in zip(*known, strict=True))
        start, end, label, mass = columns if known else (np.empty(0, np.int64),) * 4
        return owners([rows.start for rows in known]), SoftSpans(start, end, label, mass.astype(np.float32))

    def _soft_spans(self, sentence: Sentence) -> SoftSpans:
        settings, length = self.settings, self.length(sentence)
        return smoothed(self._gold(sentence), length, self.max_width, settings.smoothing, settings.smoothing_distance)


def owners(rows: Sequence[Ints]) -> Ints:
    """The number of the sentence that each of all rows belongs to.

    >>> owners([np.zeros(2), np.zeros(0), np.zeros(1)]).tolist()
    [0, 0, 2]
    """
    return np.repeat(np.arange(len(rows)), np.array([len(own) for own in rows], np.int64))


def apart(spans: Iterable[Span]) -> int:
    """The size of the largest set of spans of which no two overlap.

    >>> apart([Span(0, 5), Span(0, 2), Span(2, 3), Span(1, 4)])
    2
    """
    count, end = 0, 0
    for span in sorted(spans, key=lambda span: span.end):
        if span.start >= end:
            count, end = count + 1, span.end
    return count


def whole_spans(sentences: Iterable[Sentence]) -> list[list[Span]]:
    """The spans of each sentence's contiguous entities; where no sentence has any, all fragments instead."""
    sentences = list(sentences)
    spans = [contiguous(sentence) for sentence in sentences]
    if any(spans):
        return spans
    return [[fragment for entity in sentence.entities for fragment in entity.fragments] for sentence in sentences]


def covering(widths: Sequence[int], percent: float) -> int:
    """The smallest width such that so many percent of the widths are no larger.

    >>> covering([1, 1, 2, 9], 75), covering([1, 1, 2, 9], 76)
    (2, 9)
    """
    return sorted(widths)[ceil(len(widths) * percent / 100) - 1]


def uncrossed(spans: Iterable[Span]) -> int:
    """How many spans are left when those that cross others go, the one that crosses the most first.

    >>> uncrossed([Span(0, 3), Span(2, 5), Span(4, 7), Span(0, 9)])
    3
    """
    left = set(spans)
    while left:
        crossings = {span: sum(map(span.crosses, left)) for span in left}
        worst = max(left, key=lambda span: (crossings[span], span))
        if not crossings[worst]:
            break
        left.remove(worst)
    return len(left)


def contiguous(sentence: Sentence) -> list[Span]:
    """The ranges of the entities of one fragment, those of equal entities once."""
    return [entity.range for entity in dict.fromkeys(sentence.entities) if not entity.is_discontinuous]
