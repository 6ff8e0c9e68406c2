"""What the heads share that represent every span by a vector of its own (DSpERT, section 3)."""

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
from spanwise.heads.base import Labels
from spanwise.heads.deep_settings import DeepSettings
from spanwise.heads.memo import Ints, Memo
from spanwise.heads.span_head import SoftmaxHead
from spanwise.spans.deep import SpanTransformer


class DeepHead(SoftmaxHead):
    """A span transformer, and a classifier of its states: [state; size] -> ReLU layer -> softmax over C + 1 classes.

    Spans are made of units, words or subwords. With subwords every span of them is judged, as in the authors' system; one that
    cuts a word is never gold and never predicted. Inside, everything is counted in units; ``_gold_rows`` and ``picked`` are the
    two doors.
    """

    settings: DeepSettings

    def __init__(
        self, width: int, labels: Labels, settings: DeepSettings, layers: Sequence[LayerParts],
        subword_counts: Callable[[Sentence], Ints] | None, state_size: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(labels, settings)
        assert settings.max_width is not None  # settled: the base class has seen to it
        self.widest, self.depth = settings.max_width, len(layers)
        self._counts, self._borders = subword_counts, Memo(self._word_borders)
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
            raise SpanwiseError(f"depth={depth}, but the encoder has {len(layers)} layers")
        encoder.hand_out(layers=depth, subwords=settings.unit == "subwords")
        counts = encoder.subword_counts if settings.unit == "subwords" else None
        return cls(encoder.width, labels, settings, layers[len(layers) - depth :], counts)

    def pretrained_parameters(self) -> Iterator[nn.Parameter]:
        return iter(self.transformer.pretrained_parameters())

    # --- units and words -------------------------------------------------------------------------------------------

    def length(self, sentence: Sentence) -> int:
        return len(sentence.words) if self._counts is None else int(self._borders(sentence)[-1])

    def forget(self) -> None:
        self._borders = Memo(self._word_borders)

    def _word_borders(self, sentence: Sentence) -> Ints:
        """The units at which words begin, and the end of the last one."""
        assert self._counts is not None
        return np.concatenate(([0], self._counts(sentence).cumsum())).astype(np.int64)

    def _gold_rows(self, sentence: Sentence) -> Ints:
        rows = super()._gold_rows(sentence)
        if self._counts is None:
            return rows
        rows = np.concatenate((self._borders(sentence)[rows[:, :2]], rows[:, 2:]), axis=1)
        return rows[rows[:, 1] - rows[:, 0] <= self.widest]

    def word_places(self, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
        """With subwords: ``word`` [B, T + 1], the word that begins at each unit (or ends before it), -1 where none does."""
        if self._counts is None:
            return {}
        longest = max([1, *map(self.length, sentences)])  # states have room for one word at least
        table = np.full((len(sentences), longest + 1), -1)
        for row, sentence in zip(table, sentences, strict=True):
            borders = self._borders(sentence)
            row[borders] = np.arange(len(borders))
        return {"word": torch.from_numpy(table)}

    def picked(
        self, found: Tensor, targets: Mapping[str, Tensor], sentence: Tensor, start: Tensor, end: Tensor, *more: Tensor
    ) -> Iterator[Tensor]:
        """The columns at the spans that are ``found`` (booleans) and cut no word, starts and ends counted in words."""
        if "word" in targets:
            table, first = targets["word"].view(-1), sentence * targets["word"].shape[1]
            start, end = table.index_select(0, first + start), table.index_select(0, first + end)
            found = found & (start >= 0) & (end >= 0)
        rows = found.nonzero().squeeze(1)
        return (column.index_select(0, rows) for column in (sentence, start, end, *more))

    @property
    def templates(self) -> Tensor:
        return self.classifier.weight

    # --- states to scores ------------------------------------------------------------------------------------------

    def words(self, states: TokenStates) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The top states, zero behind a sentence's end, and the states that enter the span transformer."""
        dtype = self.classifier.weight.dtype
        top = states.words.to(dtype)
        below = tuple(layer.to(dtype) for layer in states.layers[-self.depth :]) if self.depth else (top,)
        return top.masked_fill(~states.mask.unsqueeze(-1), 0.0), below

    def reduced(self, spans: Tensor, size: Tensor) -> Tensor:
        """From spans' states [S, …] the vectors that are classified (equation 5); ``size`` counts units."""
        of_size = self.sizes(size - 1)
        result: Tensor = self.hidden(self.dropout(torch.cat((spans, of_size.to(spans.dtype)), -1))).relu()
        return result

    def classified(self, vectors: Tensor) -> Tensor:
        """The scores of all classes in float32."""
        logits: Tensor = self.classifier(self.hidden_dropout(vectors)).float()
        return logits
