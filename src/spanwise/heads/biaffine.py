"""Biaffine span classification with boundary smoothing (Zhu and Li 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.fixed_shapes import SizeTable
from spanwise.heads.abilities import HasFixedShapes, HasSpanProbabilities, LearnsPartial
from spanwise.heads.base import Labels, Losses, OnnxGraph, ScoredSpans, SpanVectors
from spanwise.heads.outputs import class_log_odds
from spanwise.heads.partial import Known
from spanwise.heads.span_head import SoftmaxHead, pad_soft_spans, row_sizes
from spanwise.heads.span_settings import SoftmaxSettings
from spanwise.heads.units import NO_ONNX, UnitHead, UnitSettings
from spanwise.losses.smoothing import soft_cross_entropy
from spanwise.runtime.fast_linear import MULTIPLE
from spanwise.spans.tiles import Tiles


class BiaffineSettings(UnitSettings, SoftmaxSettings):
    """Settings of ``Biaffine``; the defaults are DSpERT's. Without ``max_width``, spans of all widths are scored."""

    smoothing: float = Field(
        default=0.1, ge=0.0, lt=1.0, description="probability of a gold span that its neighbours share (epsilon)"
    )
    size: int = Field(default=150, ge=1, description="size of the projected words")
    width_size: int = Field(default=25, ge=0, description="size of the width embedding; 0: no width embedding")
    widths: int = Field(default=25, ge=1, description="number of width embeddings; wider spans share the last one")
    # On the words. DSpERT uses 0.4; with a small encoder, 0.2 is better on dev of CoNLL04 and GENIA.
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0, description="dropout on the words")
    hidden_dropout: float = Field(default=0.2, ge=0.0, lt=1.0, description="dropout on projected words and width embeddings")


class ScoredCells(NamedTuple):
    """The logits of all spans of a batch, in tiles."""

    tiles: Tiles
    logits: Tensor  # [B, count, rows, C + 1, columns] in float32
    inside: Tensor  # [B, count, rows, columns], True where a cell is a span


class Biaffine(UnitHead, SoftmaxHead, HasSpanProbabilities, HasFixedShapes, LearnsPartial):
    """Span classifier that scores every span by a biaffine product of its first and last word.

    The logit of class c for the span from word i to word j is

        s_i' U_c e_j + W_c [s_i; e_j; width] + b_c,

    where s and e are projections of the words with ReLU. The linear terms of s and e are part of the
    product: U has one more row and column, which are multiplied by a constant 1. The loss is summed
    over all spans of a sentence and averaged over sentences. Boundary smoothing gives a part of each
    gold span's probability to its neighbours.

    Paper: Zhu and Li, "Boundary Smoothing for Named Entity Recognition", ACL 2022; also the baseline
    of DSpERT (Zhu et al. 2023, appendix D).

    Use it for nested or overlapping entities of any width, and for fast training. Prefer ``Grid`` for
    accuracy, ``GlobalPointer`` if a span may have several types, and ``SpanNer`` if memory is short
    and entities are narrow.

    >>> head = Biaffine(8, Labels(("Drug",)), BiaffineSettings(decoding="nested"))
    >>> states = TokenStates(torch.zeros(1, 3, 8), torch.zeros(1, 8), torch.ones(1, 3, dtype=torch.bool))
    >>> head.span_probabilities(states, {}).vectors.shape  # 6 spans; Drug and NONE
    torch.Size([6, 2])
    """

    settings_class = BiaffineSettings
    settings: BiaffineSettings

    def __init__(self, width: int, labels: Labels, settings: BiaffineSettings) -> None:
        super().__init__(labels, settings)
        size, classes = settings.size, len(labels.entities) + 1
        self.dropout = nn.Dropout(settings.dropout)
        self.projection = nn.Linear(width, 2 * size)
        self.hidden_dropout = nn.Dropout(settings.hidden_dropout)
        self.product = nn.Parameter(torch.empty(classes, size + 1, size + 1))
        nn.init.xavier_uniform_(self.product.view(classes * (size + 1), size + 1))
        self.widths = nn.Embedding(settings.widths, settings.width_size) if settings.width_size else None
        self.of_width = nn.Linear(settings.width_size, classes, bias=False) if settings.width_size else None

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: BiaffineSettings) -> Biaffine:
        return cls(encoder.width, labels, settings).read_units(encoder)

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """Smoothed gold rows. For scoring, ``word_targets``."""
        return self.smoothed_targets(sentences) if gold else self.word_targets(sentences)

    def size_table(self, sentences: Sequence[Sentence]) -> SizeTable:
        return row_sizes(self, sentences)

    def pad_targets(self, targets: Mapping[str, Tensor], sizes: Mapping[str, int], shape: torch.Size) -> dict[str, Tensor]:
        return pad_soft_spans(targets, sizes["rows"])

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        return self.cell_loss(self.score_cells(states), targets)

    def cell_loss(self, scored: ScoredCells, targets: Mapping[str, Tensor]) -> Losses:
        tiles, logits, inside = scored
        cell = targets["sentence"] * tiles.cells + tiles.index(targets["start"], targets["end"])
        masses = None
        if (known := Known.select(targets)) is not None:
            is_open = known.is_open(*tiles.spans(torch.arange(tiles.cells, device=logits.device)))  # [B, C, cells]
            masses = known.log_masses(is_open).view(*is_open.shape[:2], -1, tiles.columns).transpose(1, 2).flatten(0, 1)
        values = soft_cross_entropy(logits.flatten(0, 2), cell, targets["label"], targets["mass"], masses)
        is_span = inside.flatten(1)
        sums = values.view_as(is_span).masked_fill(~is_span, 0.0).sum(1)
        return Losses(sums, is_span.any(1).float(), instance_counts=is_span.sum(1).float())

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        tiles, logits, inside = self.score_cells(states)
        best, label = logits.max(3)
        cells = ((label != self.none) & inside).reshape(-1).nonzero().squeeze(1)
        probability = (best - logits.logsumexp(3)).view(-1).index_select(0, cells).exp()
        start, end = tiles.spans(cells % tiles.cells)
        label = label.view(-1).index_select(0, cells)
        log_odds = class_log_odds(logits.flatten(0, 2)[cells // tiles.columns, :, cells % tiles.columns], label)
        scored = ScoredSpans(cells // tiles.cells, start, end, label, probability, log_odds=log_odds)
        return self.scored_words(scored, targets)

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        tiles, logits, inside = self.score_cells(states)
        cells = inside.reshape(-1).nonzero().squeeze(1)
        logits = logits.movedim(3, -1).flatten(0, 3).index_select(0, cells)
        spans = SpanVectors(cells // tiles.cells, *tiles.spans(cells % tiles.cells), logits.softmax(-1))
        return self.word_vectors(spans, targets)

    @property
    def onnx(self) -> OnnxGraph | str:
        if self.settings.unit == "subwords":
            return NO_ONNX
        return OnnxGraph.of_spans(self.score, self.decoding, self.max_width)

    def score_cells(self, states: TokenStates) -> ScoredCells:
        """The logits of all spans."""
        tiles = Tiles.cut(states.words.shape[1], self.max_width)
        words = self.dropout(states.words.to(self.projection.weight.dtype))
        firsts, lasts = (append_one(half) for half in self.hidden_dropout(self.projection(words).relu()).chunk(2, -1))
        product: Tensor = self.product
        if words.is_cuda:  # whose products are slow for odd sizes
            firsts, lasts, product = align(firsts, lasts, product)
        classes, size = product.shape[:2]
        # s' U for all classes at once, then one product with the ends for all classes of a tile.
        left = firsts @ product.permute(1, 0, 2).reshape(size, classes * size)
        left = tiles.starts(left).reshape(words.shape[0], tiles.count, tiles.rows * classes, size)
        logits = (left @ tiles.ends(lasts).transpose(-1, -2)).float()
        logits = logits.view(words.shape[0], tiles.count, tiles.rows, classes, tiles.columns)
        if self.widths is not None and self.of_width is not None:
            width_logits = self.of_width(self.hidden_dropout(self.widths.weight)).float()
            width = tiles.offset(logits.device).clamp(0, len(width_logits) - 1)
            logits = logits + width_logits.index_select(0, width.view(-1)).view(*width.shape, classes).transpose(1, 2)
        return ScoredCells(tiles, logits, tiles.inside(states.mask))


def append_one(vectors: Tensor) -> Tensor:
    """Append a component of 1 to each vector.

    >>> append_one(torch.zeros(1, 2))
    tensor([[0., 0., 1.]])
    """
    return nn.functional.pad(vectors, (0, 1), value=1.0)


def align(firsts: Tensor, lasts: Tensor, product: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pad vectors [..., size] and products [classes, size, size] with zeros to a multiple of 8, which changes no result.

    >>> firsts, lasts, product = align(torch.ones(3), torch.ones(3), torch.ones(2, 3, 3))
    >>> product.shape, (firsts @ product @ lasts).tolist()
    (torch.Size([2, 8, 8]), [9.0, 9.0])
    """
    extra = -firsts.shape[-1] % MULTIPLE
    pad = nn.functional.pad
    return pad(firsts, (0, extra)), pad(lasts, (0, extra)), pad(product, (0, extra, 0, extra))
