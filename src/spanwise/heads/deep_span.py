"""DSpERT: deep span representations by a span transformer (Zhu et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spanwise.core.types import Sentence
from spanwise.encoders.base import TokenStates
from spanwise.encoders.fixed_shapes import SizeTable, pad_to
from spanwise.encoders.layers import LayerParts
from spanwise.encoders.recurrent import BiLSTM
from spanwise.heads.abilities import HasFixedShapes
from spanwise.heads.base import HeadSettings, Labels, Losses, ScoredSpans, SpanVectors
from spanwise.heads.deep_head import DeepHead
from spanwise.heads.deep_settings import DeepSpanSettings, ShallowSpanSettings
from spanwise.heads.outputs import class_log_odds
from spanwise.heads.partial import Known
from spanwise.heads.span_head import row_sizes, to_tensors
from spanwise.losses.smoothing import soft_cross_entropy
from spanwise.runtime.device import is_traced
from spanwise.spans.blocks import TiledSpans
from spanwise.spans.candidates import Ints, grid, packed

SPAN_MULTIPLE = 64  # the number of spans in recorded steps; sums over rows are faster then


class Candidates(NamedTuple):
    """The scored spans, packed: one per unit of the padded batch, then the wider spans."""

    sentence: Tensor
    start: Tensor
    end: Tensor
    is_span: Tensor  # False for padding

    @property
    def width(self) -> Tensor:
        return self.end - self.start


class DeepSpan(DeepHead, HasFixedShapes):
    """Span classifier that represents every span of up to ``max_width`` units by a span transformer.

    The span transformer has copies of the encoder's layers: a span attends to its words in every
    layer. A single word keeps its own top state. A BiLSTM then reads the spans of each width in the
    order of their starts: one for all widths or, with ``single_lstm``, one for single words and one
    for all wider spans, as in the published main model. All spans of a batch are in one packed
    tensor. The loss is summed over all spans of a sentence and averaged over sentences.

    With ``chunk``, the span transformer processes that many sentences at a time and recomputes their
    activations for the gradient, so that its memory does not grow with the batch.

    Paper: Zhu et al., "Deep Span Representations for Named Entity Recognition", 2023.

    Use it to reproduce DSpERT, whose strength is nested and long entities. It requires a transformer
    encoder and is the slowest head. ``PrunedSpan`` is faster with similar scores. The default recipe
    (``Grid``) is faster still, and more accurate on all corpora in docs/results.md. Choose it with the
    recipe ``deep-span``.
    """

    settings_class: ClassVar[type[HeadSettings]] = DeepSpanSettings
    settings: DeepSpanSettings

    def __init__(
        self, width: int, labels: Labels, settings: DeepSpanSettings, layers: Sequence[LayerParts],
        subword_counts: Callable[[Sentence], Ints] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(width, labels, settings, layers, subword_counts, 2 * settings.lstm or width)
        self.lstm = BiLSTM(width, settings.lstm) if settings.lstm else None
        self.single_lstm = BiLSTM(width, settings.lstm) if settings.lstm and settings.single_lstm else None
        self.lstm_dropout = nn.Dropout(settings.lstm_dropout)

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """The spans of two and more units: ``sentence``, ``start``, ``end``.

        With gold, also its smoothed rows: ``gold_sentence``, ``gold_start``, ``gold_span`` (an index into
        the spans, -1 for a single unit), ``label``, ``mass``. With ``chunk``, also ``chunk.0``,
        ``chunk.1``, ...: the indices of the spans of each chunk.
        """
        cells = grid(np.array([self.length(sentence) for sentence in sentences], np.int64), self.widest)
        cells[:, :, :1] = False
        spans = packed(cells)
        columns: dict[str, np.ndarray] = spans._asdict()
        chunk = self.settings.chunk
        if chunk:
            cuts = np.searchsorted(spans.sentence, np.arange(chunk, len(sentences), chunk))
            columns |= {f"chunk.{n}": indices for n, indices in enumerate(np.split(np.arange(len(spans.sentence)), cuts))}
        if gold:
            sentence, soft = self.smoothed_gold(sentences)
            width = soft.end - soft.start
            index = (cells.cumsum() - 1).reshape(cells.shape)[sentence, soft.start, width - 1] if len(sentence) else sentence
            columns |= {"gold_sentence": sentence, "gold_start": soft.start, "gold_span": np.where(width == 1, -1, index)}
            columns |= {"label": soft.label, "mass": soft.mass}
        return to_tensors(columns) | (self.known_targets(sentences) if gold else self.word_targets(sentences))

    def train_in_bfloat16(self) -> None:
        super().train_in_bfloat16()
        self.transformer.trains_in_bfloat16 = True

    @property
    def is_recordable(self) -> bool:
        return self.settings.chunk is None

    def size_table(self, sentences: Sequence[Sentence]) -> SizeTable:
        lengths = np.array([self.length(sentence) for sentence in sentences], np.int64)
        widths = np.arange(2, self.widest + 1)
        wider = np.maximum(lengths[:, None] + 1 - widths, 0).sum(1)
        return SizeTable({"spans": wider}, {}).join(row_sizes(self, sentences))

    def pad_targets(self, targets: Mapping[str, Tensor], sizes: Mapping[str, int], shape: torch.Size) -> dict[str, Tensor]:
        """Add spans that end after the last word, and gold rows with a mass of 0."""
        spans, rows = {"sentence": shape[0] - 1, "start": shape[1] - 2, "end": shape[1]}, {"gold_span": -1}
        count = -(-sizes["spans"] // SPAN_MULTIPLE) * SPAN_MULTIPLE
        return {
            name: pad_to(tensor, (count,), spans[name]) if name in spans
            else pad_to(tensor, (sizes["rows"],), rows.get(name, 0))
            for name, tensor in targets.items()
        }  # fmt: skip

    @property
    def target_widths(self) -> tuple[int, ...]:
        return tuple(range(2, self.widest + 1))  # single words are always scored

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        candidates, vectors = self.represent(states, targets)
        batch, length = states.mask.shape
        span = targets["gold_span"]
        candidate = torch.where(span < 0, targets["gold_sentence"] * length + targets["gold_start"], batch * length + span)
        logits = self.class_logits(vectors).unsqueeze(-1)
        masses = None
        if (known := Known.select(targets)) is not None:
            masses = known.log_masses(known.is_open_span(*candidates[:3]), candidates.sentence).unsqueeze(-1)
        values = soft_cross_entropy(logits, candidate, targets["label"], targets["mass"], masses).squeeze(-1)
        zeros = values.new_zeros(batch)
        sums = zeros.index_add(0, candidates.sentence, values.masked_fill(~candidates.is_span, 0.0))
        spans = zeros.index_add(0, candidates.sentence, candidates.is_span.to(values.dtype))
        return Losses(sums, states.mask.any(1).float(), instance_counts=spans)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        candidates, vectors = self.represent(states, targets)
        logits = self.class_logits(vectors)
        score, label = logits.softmax(-1).max(-1)
        is_entity = (label != self.none) & candidates.is_span
        columns = self.select_spans(is_entity, targets, *candidates[:3], label, score, logits)
        sentence, start, end, label, score, logits = columns
        return ScoredSpans(sentence, start, end, label, score, log_odds=class_log_odds(logits, label))

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        candidates, vectors = self.represent(states, targets)
        return SpanVectors(*self.select_spans(candidates.is_span, targets, *candidates[:3], vectors))

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        candidates, vectors = self.represent(states, targets)
        probabilities = self.class_logits(vectors).softmax(-1)
        return SpanVectors(*self.select_spans(candidates.is_span, targets, *candidates[:3], probabilities))

    def represent(self, states: TokenStates, targets: Mapping[str, Tensor]) -> tuple[Candidates, Tensor]:
        """All candidates, and the vectors that are classified [P, hidden]."""
        top, lower = self.unit_states(states)
        batch, length = states.mask.shape
        word = torch.arange(batch * length, device=top.device)
        sentence, start = word // length, word % length
        singles = (sentence, start, start + 1, states.mask.flatten())
        wider = tuple(targets[name] for name in ("sentence", "start", "end"))
        is_span = states.mask.flatten().index_select(0, wider[0] * length + wider[2] - 1)  # of padding, the last is no word
        columns = zip(singles, (*wider, is_span), strict=True)
        candidates = Candidates(*map(torch.cat, columns))
        spans = torch.cat((top.flatten(0, 1), self._deep_states(lower, targets)))
        if self.lstm is not None:
            spans = self._read_by_width(spans, candidates, states.mask)
        return candidates, self.hidden_vectors(spans, candidates.width)

    def _deep_states(self, words: Sequence[Tensor], targets: Mapping[str, Tensor]) -> Tensor:
        """The states of the spans of two and more units."""
        sentence, start, end = (targets[name] for name in ("sentence", "start", "end"))
        if not len(sentence):
            return words[0].new_zeros(0, words[0].shape[2])
        chunk = self.settings.chunk
        if chunk is None or is_traced():  # chunks save memory in training only
            return self._transform(sentence, start, end, *words)
        results = []
        for number, first in enumerate(range(0, len(words[0]), chunk)):
            rows = targets[f"chunk.{number}"]  # a list of indices, so that nothing waits for the GPU
            if len(rows):
                spans = (sentence[rows] - first, start[rows], end[rows])
                part = (layer[first : first + chunk] for layer in words)
                results.append(checkpoint(self._transform, *spans, *part, use_reentrant=False))
        return torch.cat(results)

    def _transform(self, sentence: Tensor, start: Tensor, end: Tensor, *words: Tensor) -> Tensor:
        batch, length = words[0].shape[:2]
        spans: Tensor = self.transformer(words, TiledSpans(batch, length, sentence, start, end, self.widest))
        return spans

    def _read_by_width(self, spans: Tensor, candidates: Candidates, mask: Tensor) -> Tensor:
        """Run the BiLSTM over the spans of each sentence and width, all of these sequences at once."""
        assert self.lstm is not None
        batch, length = mask.shape
        widths = min(self.widest, length)
        if self.single_lstm is not None:
            widths = max(widths, 2)  # wider spans have their own LSTM, which needs at least one sequence per sentence
        index = (candidates.sentence * widths + candidates.width - 1) * length + candidates.start
        rows = spans.new_zeros(batch * widths * length, spans.shape[1]).index_copy(0, index, self.lstm_dropout(spans))
        starts = (mask.sum(1, keepdim=True) - torch.arange(widths, device=mask.device)).clamp(min=0)
        if self.single_lstm is None:
            states: Tensor = self.lstm(rows.view(batch * widths, length, -1), starts.flatten())
        else:
            rows = rows.view(batch, widths, length, -1)
            singles = self.single_lstm(rows[:, 0], starts[:, 0]).unsqueeze(1)
            wider = self.lstm(rows[:, 1:].flatten(0, 1), starts[:, 1:].flatten()).view(batch, widths - 1, length, -1)
            states = torch.cat((singles, wider), 1).flatten(0, 1)
        return states.flatten(0, 1).index_select(0, index)


class ShallowSpan(DeepSpan):
    """``DeepSpan`` without a span transformer: a span is an aggregate of its words' top states (section 4.3).

    The paper's shallow baseline. It also runs with a static encoder.
    """

    settings_class = ShallowSpanSettings
