"""Spans of words or of subwords."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder
from spanwise.heads.abilities import CachesSentences
from spanwise.heads.base import ScoredSpans, SpanVectors
from spanwise.heads.partial import known_targets
from spanwise.heads.sentence_cache import Ints, SentenceCache
from spanwise.heads.span_head import SpanHead
from spanwise.heads.span_settings import SpanSettings
from spanwise.losses.smoothing import SoftSpans

NO_ONNX = "its spans consist of subwords; train with head.unit=words"


class UnitSettings(SpanSettings):
    """The unit of spans. Published scores of English corpora usually come from spans of subwords."""

    unit: Literal["words", "subwords"] = Field(default="words", description="unit of spans and of max_width")

    @model_validator(mode="after")
    def _check_unit(self) -> Self:
        if self.unit == "subwords" and self.max_width is None and self.coverage is not None:
            raise ValueError("unit: subwords requires max_width, which then counts subwords")
        if self.unit == "subwords" and self.discontinuous_types:
            raise ValueError("unit: subwords does not support discontinuous types, whose fragments consist of words")
        return self

    def resolve(self, sentences: Sequence[Sentence]) -> Self:
        resolved = super().resolve(sentences)
        return resolved.model_copy(update={"discontinuous": False}) if self.unit == "subwords" else resolved


class UnitHead(SpanHead, CachesSentences):
    """Base of heads whose spans consist of units: words or subwords.

    With subwords, the encoder returns their states and every span of subwords is scored; spans that
    split a word are never gold and never predicted. Inside the head all positions count units.
    ``_gold_rows`` converts words to units; ``select_spans`` converts units to words.
    """

    settings: UnitSettings
    _subword_counts: Callable[[Sentence], Ints] | None = None

    def read_units(self, encoder: Encoder) -> Self:
        """Let the encoder return states of the units; called when a head is built."""
        if self.settings.unit == "subwords":
            encoder.request_outputs(subwords=True)
            self.use_subwords(encoder.subword_counts)
        return self

    def use_subwords(self, counts: Callable[[Sentence], Ints] | None) -> None:
        """Set the function that counts the subwords of a sentence's words; None for spans of words."""
        self._subword_counts, self._boundaries = counts, SentenceCache(self._word_boundaries)

    def length(self, sentence: Sentence) -> int:
        return len(sentence.words) if self._subword_counts is None else int(self._boundaries(sentence)[-1])

    def clear_cache(self) -> None:
        self._boundaries = SentenceCache(self._word_boundaries)

    def _word_boundaries(self, sentence: Sentence) -> Ints:
        """The first unit of each word, and the end of the last word."""
        assert self._subword_counts is not None
        return np.concatenate(([0], self._subword_counts(sentence).cumsum())).astype(np.int64)

    def _gold_rows(self, sentence: Sentence) -> Ints:
        rows = super()._gold_rows(sentence)
        if self._subword_counts is None:
            return rows
        rows = np.concatenate((self._boundaries(sentence)[rows[:, :2]], rows[:, 2:]), axis=1)
        return rows if self.max_width is None else rows[rows[:, 1] - rows[:, 0] <= self.max_width]

    def known_targets(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        boundaries = None if self._subword_counts is None else self._boundaries
        return known_targets(sentences, self.labels.entities, self.marked_share, boundaries)

    def scored_spans(self, spans: SoftSpans, sentence: Sentence) -> SoftSpans:
        if self._subword_counts is None:
            return super().scored_spans(spans, sentence)
        boundaries = self._boundaries(sentence)
        spans = spans._replace(start=boundaries[spans.start], end=boundaries[spans.end])
        return spans if self.max_width is None else spans.select(spans.end - spans.start <= self.max_width)

    def word_targets(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """With subwords: ``word`` [B, T + 1], the word that starts at each unit, or -1; empty with words."""
        if self._subword_counts is None:
            return {}
        longest = max([1, *map(self.length, sentences)])  # states have at least one position
        table = np.full((len(sentences), longest + 1), -1)
        for row, sentence in zip(table, sentences, strict=True):
            boundaries = self._boundaries(sentence)
            row[boundaries] = np.arange(len(boundaries))
        return {"word": torch.from_numpy(table)}

    def select_spans(
        self, selected: Tensor, targets: Mapping[str, Tensor], sentence: Tensor, start: Tensor, end: Tensor, *more: Tensor
    ) -> Iterator[Tensor]:
        """The columns of the ``selected`` spans (a mask) that do not split a word; start and end count words."""
        if "word" in targets:
            table, offset = targets["word"].view(-1), sentence * targets["word"].shape[1]
            start, end = table.index_select(0, offset + start), table.index_select(0, offset + end)
            selected = selected & (start >= 0) & (end >= 0)
        rows = selected.nonzero().squeeze(1)
        return (column.index_select(0, rows) for column in (sentence, start, end, *more))

    def scored_words(self, scored: ScoredSpans, targets: Mapping[str, Tensor]) -> ScoredSpans:
        """Convert scored spans of units to spans of words."""
        if "word" not in targets:
            return scored
        assert scored.log_odds is not None
        is_any = torch.ones_like(scored.start, dtype=torch.bool)
        sentence, start, end, label, score, log_odds = self.select_spans(is_any, targets, *scored.columns, scored.log_odds)
        return ScoredSpans(sentence, start, end, label, score, log_odds=log_odds)

    def word_vectors(self, vectors: SpanVectors, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Convert spans of units, each with a vector, to spans of words."""
        if "word" not in targets:
            return vectors
        is_any = torch.ones_like(vectors.start, dtype=torch.bool)
        return SpanVectors(
            *self.select_spans(is_any, targets, vectors.sentence, vectors.start, vectors.end, vectors.vectors)
        )  # fmt: skip
