"""DSpERT (Zhu et al. 2023): spans represented by a transformer of their own; and its shallow comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spanwise.core.types import Sentence
from spanwise.encoders.base import TokenStates
from spanwise.encoders.layers import LayerParts
from spanwise.encoders.recurrent import BiLSTM
from spanwise.heads.base import HeadSettings, Labels, Losses, ScoredSpans, SpanVectors
from spanwise.heads.deep_head import DeepHead
from spanwise.heads.deep_settings import DeepSpanSettings, ShallowSpanSettings
from spanwise.losses.smoothing import soft_cross_entropy
from spanwise.spans.blocks import TiledSpans
from spanwise.spans.candidates import Ints, grid, packed


class Places(NamedTuple):
    """Everything that is judged, packed: every place for a word (also behind a sentence's end), then the wider spans."""

    sentence: Tensor
    start: Tensor
    end: Tensor
    real: Tensor  # false where there is no word

    @property
    def size(self) -> Tensor:
        return self.end - self.start


class DeepSpan(DeepHead):
    """Every span of up to ``max_width`` units gets its state from the span transformer; a single word keeps its own top state.

    A BiLSTM, one for all sizes, then reads the spans of each size in the order of their starts. All spans of a batch are in one
    packed tensor. The loss is summed over all spans of a sentence and its mean is over sentences.

    With ``chunk`` the spans of so many sentences are deepened at a time and their activations computed again for the gradient,
    so that what the span transformer keeps does not grow with the batch.
    """

    settings_class: ClassVar[type[HeadSettings]] = DeepSpanSettings
    settings: DeepSpanSettings

    def __init__(
        self, width: int, labels: Labels, settings: DeepSpanSettings, layers: Sequence[LayerParts],
        subword_counts: Callable[[Sentence], Ints] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(width, labels, settings, layers, subword_counts, 2 * settings.lstm or width)
        self.lstm = BiLSTM(width, settings.lstm) if settings.lstm else None
        self.lstm_dropout = nn.Dropout(settings.lstm_dropout)

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The spans of two and more units: ``sentence``, ``start``, ``end``.

        With gold its smoothed rows: ``gold_sentence``, ``gold_start``, ``number`` (among the spans; -1 for a single unit),
        ``label``, ``mass``. With ``chunk`` also ``turn.0``, ``turn.1`` …, the numbers of the spans of each chunk.
        """
        cells = grid(np.array([self.length(sentence) for sentence in sentences], np.int64), self.widest)
        cells[:, :, :1] = False
        spans = packed(cells)
        columns: dict[str, np.ndarray] = spans._asdict()
        chunk = self.settings.chunk
        if chunk:
            cuts = np.searchsorted(spans.sentence, np.arange(chunk, len(sentences), chunk))
            columns |= {f"turn.{n}": numbers for n, numbers in enumerate(np.split(np.arange(len(spans.sentence)), cuts))}
        if gold:
            owner, soft = self.soft_gold(sentences)
            size = soft.end - soft.start
            number = (cells.cumsum() - 1).reshape(cells.shape)[owner, soft.start, size - 1] if len(owner) else owner
            columns |= {"gold_sentence": owner, "gold_start": soft.start, "number": np.where(size == 1, -1, number)}
            columns |= {"label": soft.label, "mass": soft.mass}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(column)) for name, column in columns.items()}
        return tensors if gold else tensors | self.word_places(sentences)

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        places, vectors = self.represented(states, targets)
        batch, length = states.mask.shape
        number = targets["number"]
        place = torch.where(number < 0, targets["gold_sentence"] * length + targets["gold_start"], batch * length + number)
        logits = self.classified(vectors).unsqueeze(-1)
        values = soft_cross_entropy(logits, place, targets["label"], targets["mass"]).squeeze(-1)
        none = values.new_zeros(batch)
        sums = none.index_add(0, places.sentence, values.masked_fill(~places.real, 0.0))
        spans = none.index_add(0, places.sentence, places.real.to(values.dtype))
        return Losses(sums, states.mask.any(1).float(), instances=spans)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        places, vectors = self.represented(states, targets)
        score, label = self.classified(vectors).softmax(-1).max(-1)
        return ScoredSpans(*self.picked((label != self.none) & places.real, targets, *places[:3], label, score))

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        places, vectors = self.represented(states, targets)
        return SpanVectors(*self.picked(places.real, targets, *places[:3], vectors))

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        places, vectors = self.represented(states, targets)
        return SpanVectors(*self.picked(places.real, targets, *places[:3], self.classified(vectors).softmax(-1)))

    def represented(self, states: TokenStates, targets: Mapping[str, Tensor]) -> tuple[Places, Tensor]:
        """All places, and the vectors that are classified [P, hidden]."""
        top, below = self.words(states)
        batch, length = states.mask.shape
        word = torch.arange(batch * length, device=top.device)
        sentence, start = word // length, word % length
        singles = (sentence, start, start + 1, states.mask.flatten())
        wider = tuple(targets[name] for name in ("sentence", "start", "end"))
        places = Places(*map(torch.cat, zip(singles, (*wider, torch.ones_like(wider[0], dtype=torch.bool)), strict=True)))
        spans = torch.cat((top.flatten(0, 1), self._deepened(below, targets)))
        if self.lstm is not None:
            spans = self._along_starts(spans, places, states.mask)
        return places, self.reduced(spans, places.size)

    def _deepened(self, words: Sequence[Tensor], targets: Mapping[str, Tensor]) -> Tensor:
        """The states of the spans of two and more units."""
        sentence, start, end = (targets[name] for name in ("sentence", "start", "end"))
        if not len(sentence):
            return words[0].new_zeros(0, words[0].shape[2])
        chunk = self.settings.chunk
        if chunk is None:
            return self._transformed(sentence, start, end, *words)
        results = []
        for number, first in enumerate(range(0, len(words[0]), chunk)):
            rows = targets[f"turn.{number}"]  # its length is known without waiting for the device
            if len(rows):
                spans = (sentence[rows] - first, start[rows], end[rows])
                part = (layer[first : first + chunk] for layer in words)
                results.append(checkpoint(self._transformed, *spans, *part, use_reentrant=False))
        return torch.cat(results)

    def _transformed(self, sentence: Tensor, start: Tensor, end: Tensor, *words: Tensor) -> Tensor:
        batch, length = words[0].shape[:2]
        spans: Tensor = self.transformer(words, TiledSpans(batch, length, sentence, start, end, self.widest))
        return spans

    def _along_starts(self, spans: Tensor, places: Places, mask: Tensor) -> Tensor:
        """The spans of one sentence and size are a sequence. All sequences are read at once."""
        assert self.lstm is not None
        batch, length = mask.shape
        sizes = min(self.widest, length)
        place = (places.sentence * sizes + places.size - 1) * length + places.start
        rows = spans.new_zeros(batch * sizes * length, spans.shape[1]).index_copy(0, place, self.lstm_dropout(spans))
        starts = (mask.sum(1, keepdim=True) - torch.arange(sizes, device=mask.device)).clamp(min=0).flatten()
        read: Tensor = self.lstm(rows.view(batch * sizes, length, -1), starts)
        return read.flatten(0, 1).index_select(0, place)


class ShallowSpan(DeepSpan):
    """The same without a span transformer: a span's state is an aggregate of its words' top states (section 4.3)."""

    settings_class = ShallowSpanSettings
