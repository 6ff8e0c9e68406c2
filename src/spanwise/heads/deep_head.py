"""Base class of heads with a span transformer (DSpERT, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.layers import LayerParts
from spanwise.heads.abilities import CachesSentences, HasParameterGroups, HasSpanProbabilities, HasSpanVectors
from spanwise.heads.base import Labels, OnnxGraph
from spanwise.heads.deep_settings import DeepSettings
from spanwise.heads.sentence_cache import Ints, SentenceCache
from spanwise.heads.span_head import SoftmaxHead
from spanwise.losses.smoothing import SoftSpans
from spanwise.spans.deep import SpanTransformer


class DeepHead(SoftmaxHead, HasSpanVectors, HasSpanProbabilities, HasParameterGroups, CachesSentences):
    """Base of deep heads: a span transformer and a classifier of its states.

    The classifier is [state; width embedding] -> ReLU layer -> softmax over C + 1 classes.

    Spans consist of units: words or subwords. With subwords every span of subwords is scored, as in
    the authors' system; spans that split a word are never gold and never predicted. Inside the head
    all positions count units. ``_gold_rows`` converts words to units and ``select_spans`` converts
    units to words.
    """

    settings: DeepSettings

    def __init__(
        self, width: int, labels: Labels, settings: DeepSettings, layers: Sequence[LayerParts],
        subword_counts: Callable[[Sentence], Ints] | None, state_size: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(labels, settings)
        assert settings.max_width is not None  # the base class has checked it
        self.widest, self.depth = settings.max_width, len(layers)
        self._subword_counts, self._boundaries = subword_counts, SentenceCache(self._word_boundaries)
        self.transformer = SpanTransformer(
            width, layers, shared=settings.share_weights, aggregation=settings.aggregation, dropout=settings.start_dropout
        )
        self.sizes = nn.Embedding(self.widest, settings.width_size)
        self.dropout = nn.Dropout(settings.dropout)
        self.hidden = nn.Linear((state_size or width) + settings.width_size, settings.hidden)
        self.hidden_dropout = nn.Dropout(settings.hidden_dropout)
        self.classifier = nn.Linear(settings.hidden, len(labels.entities) + 1)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: DeepSettings) -> Self:
        layers = [] if settings.depth == 0 else encoder.layer_parts()
        depth = len(layers) if settings.depth is None else settings.depth
        if depth > len(layers):
            raise SpanwiseError(f"head.depth: expected at most {len(layers)}, the layers of the encoder, found {depth}")
        encoder.request_outputs(layers=depth, subwords=settings.unit == "subwords")
        counts = encoder.subword_counts if settings.unit == "subwords" else None
        return cls(encoder.width, labels, settings, layers[len(layers) - depth :], counts)

    @property
    def onnx(self) -> OnnxGraph | str:
        if self.settings.unit == "subwords":
            return "its spans consist of subwords; train with head.unit=words"
        return OnnxGraph.of_spans(self.score, self.decoding, self.max_width, span_widths=self.target_widths)

    @property
    def target_widths(self) -> tuple[int, ...]:
        """The widths of the spans that ``targets`` lists for scoring."""
        return ()

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        return iter(self.transformer.pretrained_parameters())

    # --- units and words -------------------------------------------------------------------------------------------

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
        return rows[rows[:, 1] - rows[:, 0] <= self.widest]

    def scored_spans(self, spans: SoftSpans, sentence: Sentence) -> SoftSpans:
        if self._subword_counts is not None:
            boundaries = self._boundaries(sentence)
            spans = spans._replace(start=boundaries[spans.start], end=boundaries[spans.end])
        return super().scored_spans(spans, sentence)

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

    @property
    def class_weights(self) -> Tensor:
        return self.classifier.weight

    # --- states to scores ------------------------------------------------------------------------------------------

    def unit_states(self, states: TokenStates) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The top states, zero after a sentence's end, and the states that enter the span transformer."""
        dtype = self.classifier.weight.dtype
        top = states.words.to(dtype)
        lower = tuple(layer.to(dtype) for layer in states.layers[-self.depth :]) if self.depth else (top,)
        return top.masked_fill(~states.mask.unsqueeze(-1), 0.0), lower

    def hidden_vectors(self, spans: Tensor, width: Tensor) -> Tensor:
        """From states [S, ...] of spans to the vectors that are classified (equation 5); ``width`` counts units."""
        embedding = self.sizes(width - 1)
        vectors: Tensor = self.hidden(self.dropout(torch.cat((spans, embedding.to(spans.dtype)), -1))).relu()
        return vectors

    def class_logits(self, vectors: Tensor) -> Tensor:
        """The logits of all classes, in float32."""
        logits: Tensor = self.classifier(self.hidden_dropout(vectors)).float()
        return logits
