"""What the heads share that classify packed spans one by one: gold and sampled negatives to learn from, all spans to score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders.base import TokenStates
from spanwise.heads.base import Labels, Losses, ScoredSpans, SpanVectors
from spanwise.heads.span_head import SoftmaxHead, SoftmaxSettings
from spanwise.losses.smoothing import SoftSpans, soft_cross_entropy
from spanwise.spans.candidates import Ints, Spans, grid, packed, sampled_negatives


class ClassifierSettings(SoftmaxSettings):
    """``max_width`` is, unless given, the smallest that covers 99 % of the training entities."""

    coverage: ClassVar[float | None] = 99

    negatives: int = Field(default=100, ge=1)  # sampled per sentence in training


class SpanClassifier(SoftmaxHead):
    """Each span of up to ``max_width`` words gets one of the types or NONE; training takes the gold and sampled negatives.

    Gold spans wider than ``max_width`` and discontinuous entities cannot be predicted and are no examples. With boundary
    smoothing the neighbours of the gold spans are examples too.
    """

    settings: ClassifierSettings
    classifier: nn.Linear

    def __init__(self, labels: Labels, settings: ClassifierSettings) -> None:
        super().__init__(labels, settings)
        assert settings.max_width is not None  # settled: the base class has seen to it
        self.widest = settings.max_width

    @abstractmethod
    def logits(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Tensor:
        """The scores of all classes for each packed span: [S, C + 1] in float32."""

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """Packed spans: ``sentence``, ``start``, ``end``; with gold, rows of ``place`` among them, ``label`` and ``mass``."""
        lengths = np.array([len(sentence.words) for sentence in sentences], np.int64)
        if not gold:
            return _tensors(packed(grid(lengths, self.widest)))
        owner, soft = self.soft_gold(sentences)
        # A span with several labels has a row for each, one behind another; it is one example.
        is_new = np.ones(len(owner), bool)
        is_new[1:] = (np.diff(owner) != 0) | (np.diff(soft.start) != 0) | (np.diff(soft.end) != 0)
        known = Spans(owner[is_new], soft.start[is_new], soft.end[is_new])
        if generator is None:
            cells = grid(lengths, self.widest)
            numbers = (cells.cumsum() - 1).reshape(cells.shape)
            return _tensors(packed(cells), soft, numbers[owner, soft.start, soft.end - soft.start - 1])
        negatives = sampled_negatives(lengths, self.widest, known, self.settings.negatives, generator)
        every = Spans(*(np.concatenate(columns) for columns in zip(known, negatives, strict=True)))
        return _tensors(every, soft, is_new.cumsum() - 1)

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        logits = self.logits(states, targets).unsqueeze(-1)
        values = soft_cross_entropy(logits, targets["place"], targets["label"], targets["mass"]).squeeze(-1)
        return summed(values, targets["sentence"], len(states.words))

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        score, label = self.logits(states, targets).softmax(-1).max(-1)
        found = (label != self.none).nonzero().squeeze(1)
        columns = (targets["sentence"], targets["start"], targets["end"], label, score)
        return ScoredSpans(*(column.index_select(0, found) for column in columns))

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        return self.packed(self.logits(states, targets).softmax(-1), targets)

    @property
    def templates(self) -> Tensor:
        return self.classifier.weight

    def packed(self, values: Tensor, targets: Mapping[str, Tensor]) -> SpanVectors:
        """What was computed for each span of the ``targets`` for scoring."""
        return SpanVectors(targets["sentence"], targets["start"], targets["end"], values)


def summed(values: Tensor, sentence: Tensor, count: int) -> Losses:
    """The losses of packed spans, each of which is one instance, as those of their ``count`` sentences."""
    none = values.new_zeros(count)
    return Losses(none.index_add(0, sentence, values), none.index_add(0, sentence, torch.ones_like(values)))


def _tensors(spans: Spans, soft: SoftSpans | None = None, place: Ints | None = None) -> dict[str, Tensor]:
    columns: dict[str, np.ndarray] = spans._asdict()
    if soft is not None and place is not None:
        columns |= {"place": place, "label": soft.label, "mass": soft.mass}
    return {name: torch.from_numpy(np.ascontiguousarray(column)) for name, column in columns.items()}
