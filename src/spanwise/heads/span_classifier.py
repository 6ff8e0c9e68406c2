"""Base class of heads that classify packed spans and learn from sampled negatives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads.abilities import HasSpanProbabilities, HasSpanVectors, LearnsPartial
from spanwise.heads.base import Labels, Losses, ScoredSpans, SpanVectors
from spanwise.heads.outputs import class_log_odds
from spanwise.heads.partial import Known
from spanwise.heads.span_head import SoftmaxHead, to_tensors
from spanwise.heads.span_settings import SoftmaxSettings
from spanwise.losses.smoothing import SoftSpans, soft_cross_entropy
from spanwise.spans.candidates import Ints, Spans, grid, packed, sample_negatives


class ClassifierSettings(SoftmaxSettings):
    """Settings of span classifiers. By default, ``max_width`` covers 99 % of the training entities."""

    coverage: ClassVar[float | None] = 99

    negatives: int = Field(default=100, ge=1, description="spans without entity, sampled per sentence in training")


class SpanClassifier(SoftmaxHead, HasSpanVectors, HasSpanProbabilities, LearnsPartial):
    """Base of heads that classify each span of up to ``max_width`` words as one of the types or NONE.

    Training uses the gold spans, with boundary smoothing also their neighbours, and sampled negatives.
    Scoring uses all spans. Wider and discontinuous gold entities cannot be predicted and are not
    learned.
    """

    settings: ClassifierSettings
    classifier: nn.Linear

    def __init__(self, labels: Labels, settings: ClassifierSettings) -> None:
        super().__init__(labels, settings)
        assert settings.max_width is not None  # the base class has checked it
        self.widest = settings.max_width

    @abstractmethod
    def logits(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """The logits of all classes for each packed span: [S, C + 1] in float32."""

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """Packed spans: ``sentence``, ``start``, ``end``.

        With gold, also its rows: ``place`` (an index into the spans), ``label`` and ``mass``.
        """
        lengths = np.array([self.length(sentence) for sentence in sentences], np.int64)
        if not gold:
            return _tensors(packed(grid(lengths, self.widest)))
        sentence, soft = self.smoothed_gold(sentences)
        # A span with several labels has consecutive rows, one per label, but is one example.
        is_new = np.ones(len(sentence), bool)
        is_new[1:] = (np.diff(sentence) != 0) | (np.diff(soft.start) != 0) | (np.diff(soft.end) != 0)
        gold_spans = Spans(sentence[is_new], soft.start[is_new], soft.end[is_new])
        if generator is None:
            cells = grid(lengths, self.widest)
            indices = (cells.cumsum() - 1).reshape(cells.shape)
            place = indices[sentence, soft.start, soft.end - soft.start - 1]
            return _tensors(packed(cells), soft, place) | self.known_targets(sentences)
        known = self.known_targets(sentences)
        candidates = None if not known else self._counted_cells(lengths, Known(**known))
        negatives = sample_negatives(lengths, self.widest, gold_spans, self.settings.negatives, generator, candidates)
        spans = Spans(*(np.concatenate(columns) for columns in zip(gold_spans, negatives, strict=True)))
        return _tensors(spans, soft, is_new.cumsum() - 1) | known

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        logits = self.logits(states, targets).unsqueeze(-1)
        spans = targets["sentence"], targets["start"], targets["end"]
        # The last word of padding is no word.
        is_span = states.mask.flatten().index_select(0, spans[0] * states.mask.shape[1] + spans[2] - 1)
        masses, is_counted = None, is_span.float()
        if (known := Known.select(targets)) is not None:
            masses = known.log_masses(known.is_open_span(*spans), targets["sentence"]).unsqueeze(-1)
            is_counted = is_counted * (~known.is_ignored(*spans)).float().index_fill(0, targets["place"], 1.0)
        values = soft_cross_entropy(logits, targets["place"], targets["label"], targets["mass"], masses).squeeze(-1)
        return sum_by_sentence(values.masked_fill(~is_span, 0.0), targets["sentence"], len(states.words), is_counted)

    def _counted_cells(self, lengths: Ints, known: Known) -> npt.NDArray[np.bool_]:
        """The grid cells that may be negatives: all but those that count for no type."""
        cells = grid(lengths, self.widest)
        spans = packed(cells)
        cells[cells] = ~known.is_ignored(*(torch.from_numpy(column) for column in spans)).numpy()
        return cells

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        logits = self.logits(states, targets)
        score, label = logits.softmax(-1).max(-1)
        selected = (label != self.none).nonzero().squeeze(1)
        columns = (targets["sentence"], targets["start"], targets["end"], label, score)
        sentence, start, end, label, score = (column.index_select(0, selected) for column in columns)
        log_odds = class_log_odds(logits.index_select(0, selected), label)
        return ScoredSpans(sentence, start, end, label, score, log_odds=log_odds)

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        return self.pack(self.logits(states, targets).softmax(-1), targets)

    @property
    def class_weights(self) -> Tensor:
        return self.classifier.weight

    def pack(self, values: Tensor, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Combine a value per span with the spans of the ``targets`` for scoring."""
        return SpanVectors(targets["sentence"], targets["start"], targets["end"], values)


def sum_by_sentence(values: Tensor, sentence: Tensor, count: int, is_counted: Tensor | None = None) -> Losses:
    """Sum the losses of packed instances for each of ``count`` sentences; ``is_counted`` is 0 for those that do not count."""
    zeros, counted = values.new_zeros(count), torch.ones_like(values) if is_counted is None else is_counted
    return Losses(zeros.index_add(0, sentence, values), zeros.index_add(0, sentence, counted))


def _tensors(spans: Spans, soft: SoftSpans | None = None, place: Ints | None = None) -> dict[str, Tensor]:
    columns: dict[str, npt.NDArray[np.generic]] = spans._asdict()
    if soft is not None and place is not None:
        columns |= {"place": place, "label": soft.label, "mass": soft.mass}
    return to_tensors(columns)
