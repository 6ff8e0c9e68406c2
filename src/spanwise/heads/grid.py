"""Spans on a grid, where convolutions compare neighbouring spans (after CNN-NER, Yan et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import Field, field_validator
from torch import Tensor, nn

from spanwise.core.type_sets import frequent_type_sets
from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.fixed_shapes import SizeTable
from spanwise.heads.abilities import HasFixedShapes, HasSpanProbabilities, HasSpanVectors, LearnsPartial, RenamesWeights
from spanwise.heads.base import Labels, Losses, OnnxGraph, ScoredSpans, SpanVectors
from spanwise.heads.cell_loss import can_use_loss_kernels, cell_losses, gold_cells, sums_with_kernels
from spanwise.heads.cells import sum_words, windows
from spanwise.heads.fast_cells import can_use_cell_kernels, compared_cells, joined_cells
from spanwise.heads.outputs import class_log_odds
from spanwise.heads.partial import Known
from spanwise.heads.span_head import SoftmaxHead, pad_soft_spans, row_sizes
from spanwise.heads.span_settings import SoftmaxSettings
from spanwise.heads.tuned_threshold import DEFAULT_THRESHOLD, TunedThreshold
from spanwise.heads.type_sets import TypeSets

NONE_BIAS = 3.0  # log odds of NONE before training
MAX_AUTOMATIC_WIDTH = 16


class GridSettings(SoftmaxSettings):
    """Settings of ``Grid``. By default, ``max_width`` covers 99.5 % of the training entities and is at most 16."""

    coverage: ClassVar[float | None] = 99.5
    max_automatic_width: ClassVar[int | None] = MAX_AUTOMATIC_WIDTH

    smoothing: float = Field(
        default=0.1, ge=0.0, lt=1.0, description="probability of a gold span that its neighbours share (epsilon)"
    )
    channels: int = Field(default=96, ge=1, description="size of a cell")
    rank: int = Field(default=96, ge=0, description="rank of the product of first and last word; 0: no product")
    depth: int = Field(default=2, ge=0, description="number of convolutions")
    kernel: int = Field(default=3, ge=1, description="rows and columns of a convolution")
    sampling: float = Field(default=1.0, gt=0.0, le=1.0, description="share of the NONE spans used in a training step")
    pooling: bool = Field(default=True, description="add the maximum over the words of a span")
    threshold: Annotated[float, Field(gt=0.0, lt=1.0)] | Literal["dev"] = Field(
        default="dev", description="minimum probability of an entity; dev: chosen for the best F1 on dev"
    )
    type_sets: Literal["auto", False] | tuple[tuple[str, ...], ...] = Field(
        default="auto", description="types that a span may have together; auto: as in the training data; false: one type"
    )
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0, description="dropout on the words")
    hidden_dropout: float = Field(default=0.2, ge=0.0, lt=1.0, description="dropout on the cells")

    @field_validator("kernel")
    @classmethod
    def _check_kernel(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError("expected an odd number, so that a span is in the middle of its neighbours")
        return value

    @field_validator("type_sets", mode="before")
    @classmethod
    def _check_type_sets(cls, value: object) -> object:
        if value == "auto" or value is False:
            return value
        rows = value if isinstance(value, list | tuple) else [value]
        groups = [types if isinstance(types, list | tuple) else () for types in rows]
        sets = [{type for type in types if isinstance(type, str)} for types in groups]
        if any(len(types) < 2 for types in sets) or any(types in sets[:row] for row, types in enumerate(sets)):
            raise ValueError("expected auto, false or different sets of at least two types, for example [[City, Capital]]")
        return value or False

    def resolve(self, sentences: Sequence[Sentence]) -> Self:
        settings = self
        if self.type_sets == "auto" and any(sentence.entities for sentence in sentences):
            settings = self.model_copy(update={"type_sets": frequent_type_sets(sentences) or False})
        return super(GridSettings, settings).resolve(sentences)

    @property
    def allows_several_types(self) -> bool:
        return isinstance(self.type_sets, tuple)


class Grid(
    SoftmaxHead, TunedThreshold, HasSpanProbabilities, HasSpanVectors, HasFixedShapes, LearnsPartial, RenamesWeights
):  # fmt: skip
    """Span classifier on a grid [starts, widths], whose cells are compared by residual convolutions.

    Spans that share a boundary or overlap compete or nest, but most heads score each of them alone.
    Here the spans of a sentence form an image with one row per start and one column per width, and
    small convolutions compare each span with its neighbours. A cell is the sum of projections of its
    first and last word, their product, the maximum over its words and a width embedding. Only widths
    up to ``max_width`` have a column, so that the cost grows with T x width and not with T x T. The
    loss is summed over all spans of a sentence and averaged over sentences. A span is an entity if the
    probability of its best type reaches ``threshold``. Types that spans have together in the training
    data are classes, too (``TypeSets``): a span then has those types of its best class whose probabilities reach it.

    Paper: after Yan et al., "An Embarrassingly Easy but Strong Baseline for Nested Named Entity
    Recognition", ACL 2023 (CNN-NER), whose grid is T x T.

    Use it for accuracy on flat and nested entities of moderate width; it is the head of the default
    recipe. Prefer ``GlobalPointer`` if entities are long, and ``SpanNer`` if memory is short.

    >>> head = Grid(8, Labels(("Drug",)), GridSettings(max_width=2, decoding="nested"))
    >>> states = TokenStates(torch.zeros(1, 3, 8), torch.zeros(1, 8), torch.ones(1, 3, dtype=torch.bool))
    >>> head.span_probabilities(states, {}).vectors.shape  # 5 spans; Drug and NONE
    torch.Size([5, 2])
    """

    settings_class = GridSettings
    settings: GridSettings

    def __init__(self, width: int, labels: Labels, settings: GridSettings) -> None:
        super().__init__(labels, settings)
        assert settings.max_width is not None
        self.widest = settings.max_width
        self.threshold = DEFAULT_THRESHOLD if settings.threshold == "dev" else settings.threshold
        channels, rank = settings.channels, settings.rank
        self.sizes = [channels, channels, rank, rank, channels if settings.pooling else 0]
        self.dropout = nn.Dropout(settings.dropout)
        self.hidden_dropout = nn.Dropout(settings.hidden_dropout)
        self.projection = nn.Linear(width, sum(self.sizes))
        self.product = nn.Linear(rank, channels, bias=False) if rank else None
        self.widths = nn.Parameter(torch.randn(self.widest, channels) * 0.02)
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(settings.depth + 1))
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels, channels, settings.kernel, padding=settings.kernel // 2) for _ in range(settings.depth)
        )
        self.classifier = nn.Linear(channels, len(labels.entities) + 1)
        with torch.no_grad():
            self.classifier.bias[-1] = NONE_BIAS  # nearly all spans are NONE
        sets = settings.type_sets if isinstance(settings.type_sets, tuple) else ()
        self.type_sets = TypeSets(sets, labels.entities, channels) if sets else None
        self.none += len(sets)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: GridSettings) -> Grid:
        return cls(encoder.width, labels, settings)

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """Smoothed gold rows. Empty for scoring."""
        return self.smoothed_targets(sentences) if gold else {}

    @property
    def is_recordable(self) -> bool:
        return self.settings.sampling == 1  # added rows count as gold, which is always sampled

    def size_table(self, sentences: Sequence[Sentence]) -> SizeTable:
        return row_sizes(self, sentences)

    def pad_targets(self, targets: Mapping[str, Tensor], sizes: Mapping[str, int], shape: torch.Size) -> dict[str, Tensor]:
        return pad_soft_spans(targets, sizes["rows"])

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        logits, inside = self.score_cells(states)
        counts = inside.flatten(1).sum(1, dtype=torch.float32)
        return Losses(self._sum_losses(logits, inside, targets), counts.clamp(max=1), instance_counts=counts)

    def _sum_losses(self, logits: Tensor, inside: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        """The loss of each sentence [B]."""
        is_sampled = self.training and self.settings.sampling < 1
        masses = self._open_masses(targets, inside)
        if self.training and masses is None and not is_sampled and can_use_loss_kernels(logits):
            return sums_with_kernels(logits, inside, targets)
        values = cell_losses(logits, inside, targets, masses, self._row_masses(targets))
        counted = inside
        if is_sampled:
            is_kept = (torch.rand_like(values) < self.settings.sampling).view(-1)
            counted = inside & is_kept.index_fill(0, gold_cells(targets, inside), True).view_as(inside)
        return values.masked_fill(~counted, 0.0).flatten(1).sum(1)

    def _open_masses(self, targets: Mapping[str, Tensor], inside: Tensor) -> Tensor | None:
        """The log-probabilities of unmarked entities [B * T, C, W], if the annotation is partial."""
        if (known := Known.select(targets)) is None:
            return None
        _, start, end = self._spans(torch.arange(inside[0].numel(), device=inside.device), inside.shape[1])
        is_open = known.is_open(start, end)  # [B, C, T * W]
        if self.type_sets is not None:
            is_open = self.type_sets.open_classes(is_open)
        masses = known.log_masses(is_open)
        return masses.view(*masses.shape[:2], *inside.shape[1:]).transpose(1, 2).flatten(0, 1)

    def _row_masses(self, targets: Mapping[str, Tensor]) -> Tensor | None:
        """The log-probabilities that gold rows have a larger set of types [rows, C], if some of these may be unmarked."""
        if (known := Known.select(targets)) is None or self.type_sets is None:
            return None
        sentence, label = targets["sentence"], targets["label"]
        is_open = known.is_open_span(sentence, targets["start"], targets["end"])
        masses = known.log_masses(self.type_sets.possible_classes(is_open, label), sentence)
        return masses.scatter(1, label.unsqueeze(1), 0.0)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        logits, inside = self.score_cells(states)
        probabilities = logits.softmax(-1)[..., : self.none]
        score, best = probabilities.max(-1)
        threshold = targets.get("threshold", self.threshold)  # in ONNX, the threshold is an input
        if self.type_sets is None:
            cells = ((score >= threshold) & inside).view(-1).nonzero().squeeze(1)
            label, score = best.view(-1).index_select(0, cells), score.view(-1).index_select(0, cells)
        else:
            scores = self.type_sets.probabilities(probabilities)
            is_predicted = self.type_sets.table[best] & (scores >= threshold) & inside.unsqueeze(-1)
            cells, label = is_predicted.flatten(0, 2).nonzero().unbind(1)
            score = scores.flatten(0, 2)[cells, label]
        log_odds = class_log_odds(logits.flatten(0, 2).index_select(0, cells), best.view(-1).index_select(0, cells))
        return ScoredSpans(*self._spans(cells, inside.shape[1]), label, score, log_odds=log_odds)

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        logits, inside = self.score_cells(states)
        cells = inside.reshape(-1).nonzero().squeeze(1)
        classes = logits.flatten(0, 2).index_select(0, cells).softmax(-1)
        if self.type_sets is not None:
            classes = torch.cat((self.type_sets.probabilities(classes[:, :-1]), classes[:, -1:]), 1)
        return SpanVectors(*self._spans(cells, inside.shape[1]), classes)

    def span_vectors(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """The cells after the convolutions."""
        vectors, inside = self.cells(states)
        cells = inside.reshape(-1).nonzero().squeeze(1)
        return SpanVectors(*self._spans(cells, inside.shape[1]), vectors.flatten(0, 2).index_select(0, cells))

    @property
    def class_weights(self) -> Tensor:
        return self.classifier.weight

    def transfer_name(self, name: str) -> str:
        """The names of the layer for sets of types contain the sets, because it only fits the same sets."""
        return f"{self.settings.type_sets}.{name}" if name.startswith("type_sets.") else name

    @property
    def onnx(self) -> OnnxGraph | str:
        return OnnxGraph.of_spans(self.score, self.decoding, self.max_width, has_threshold_input=True)

    def score_cells(self, states: TokenStates) -> tuple[Tensor, Tensor]:
        """The logits of all classes [B, T, W, C + 1] in float32, and which cells are spans [B, T, W]."""
        cells, inside = self.cells(states)
        cells = self.hidden_dropout(cells)
        logits = self.classifier(cells)
        return (logits if self.type_sets is None else self.type_sets.add_logits(logits, cells)).float(), inside

    def cells(self, states: TokenStates) -> tuple[Tensor, Tensor]:
        """The vectors that are classified [B, T, W, channels], and which cells are spans [B, T, W].

        Cells outside the sentence are 0 before each convolution, so that padding changes nothing.
        """
        mask = states.mask.bool()
        inside = windows(mask.unsqueeze(2), self.widest).squeeze(-1) & mask.unsqueeze(2)
        words = states.words.to(self.projection.weight.dtype)
        if self.training and can_use_cell_kernels(words, self.widest, self.settings.channels, self.settings.rank):
            return self.cells_with_kernels(words, inside), inside
        outside = ~inside.unsqueeze(-1)
        cells = self._single_cells(words)
        cells = self.hidden_dropout(F.gelu(self.norms[0](cells))).masked_fill(outside, 0.0)
        for norm, convolution in zip(self.norms[1:], self.convolutions, strict=True):
            neighbours = convolution(cells.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
            cells = (cells + F.gelu(norm(neighbours))).masked_fill(outside, 0.0)
        return cells, inside

    def cells_with_kernels(self, words: Tensor, inside: Tensor) -> Tensor:
        """The cells in training, computed by kernels."""
        projected = self.projection(self.dropout(words))
        product = None if self.product is None else self.product.weight
        first_norm, *norms = self.norms
        dropout, has_content = self.hidden_dropout.p, self.settings.pooling
        cells = joined_cells(projected, product, self.widths, first_norm, inside, dropout, has_content=has_content)
        for norm, convolution in zip(norms, self.convolutions, strict=True):
            cells = compared_cells(cells, convolution, norm, inside)
        return cells

    def _single_cells(self, words: Tensor) -> Tensor:
        """The cells before the convolutions: [B, T, W, channels]."""
        return sum_words(self.projection(self.dropout(words)), self.sizes, self.widths, self.product)

    def _spans(self, cells: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
        """Sentence, start and end of cells that are given by flat indices."""
        row, column = cells // self.widest, cells % self.widest
        start = row % length
        return row // length, start, start + column + 1
