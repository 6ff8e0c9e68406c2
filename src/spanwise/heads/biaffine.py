"""A biaffine classifier of spans with boundary smoothing (Zhu and Li 2022), the baseline of DSpERT (appendix D)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.base import Labels, Losses, ScoredSpans, SpanVectors
from spanwise.heads.span_head import SoftmaxHead, SoftmaxSettings
from spanwise.losses.smoothing import soft_cross_entropy
from spanwise.spans.tiles import Tiles


class BiaffineSettings(SoftmaxSettings):
    """What may be set; the defaults are DSpERT's. All widths are scored unless ``max_width`` is given."""

    smoothing: float = Field(default=0.1, ge=0.0, lt=1.0)
    size: int = Field(default=150, ge=1)  # of the vectors that are multiplied
    width_size: int = Field(default=25, ge=0)  # of the embedding of a span's width; 0 for none
    widths: int = Field(default=25, ge=1)  # that have an embedding of their own; wider spans share the last one
    # Of the words. DSpERT has 0.4; with a small encoder 0.2 is better on the dev sets of CoNLL04 and GENIA.
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0)
    hidden_dropout: float = Field(default=0.2, ge=0.0, lt=1.0)  # of the projected words and the width embeddings


class ScoredCells(NamedTuple):
    """The scores of every span of a batch."""

    tiles: Tiles
    logits: Tensor  # of all classes [B, count, rows, C + 1, columns] in float32
    inside: Tensor  # which cells are spans [B, count, rows, columns]


class Biaffine(SoftmaxHead):
    """Class c of a span from word i to word j scores s_i' U_c e_j + W_c [s_i; e_j; width] + b_c.

    s and e are projections of the words with ReLU. The linear terms of s and e are part of the product: U has a row and a
    column more, which meet a constant 1. The loss is summed over all spans of a sentence and its mean is over sentences.
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
        return cls(encoder.width, labels, settings)

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """With gold its smoothed rows: ``sentence``, ``start``, ``end``, ``label``, ``mass``; scoring needs nothing."""
        if not gold:
            return {}
        owner, soft = self.soft_gold(sentences)
        columns = {"sentence": owner, **soft._asdict()}
        return {name: torch.from_numpy(np.ascontiguousarray(column)) for name, column in columns.items()}

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        return self.loss_of(self.scored(states), targets)

    def loss_of(self, scored: ScoredCells, targets: Mapping[str, Tensor]) -> Losses:
        tiles, logits, inside = scored
        place = targets["sentence"] * tiles.cells + tiles.place(targets["start"], targets["end"])
        values = soft_cross_entropy(logits.flatten(0, 2), place, targets["label"], targets["mass"])
        cells = inside.flatten(1)
        sums = values.view_as(cells).masked_fill(~cells, 0.0).sum(1)
        return Losses(sums, cells.any(1).float(), instances=cells.sum(1).float())

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        tiles, logits, inside = self.scored(states)
        best, label = logits.max(3)
        found = ((label != self.none) & inside).reshape(-1).nonzero().squeeze(1)
        chance = (best - logits.logsumexp(3)).view(-1).index_select(0, found).exp()
        start, end = tiles.spans(found % tiles.cells)
        return ScoredSpans(found // tiles.cells, start, end, label.view(-1).index_select(0, found), chance)

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        tiles, logits, inside = self.scored(states)
        every = inside.reshape(-1).nonzero().squeeze(1)
        logits = logits.movedim(3, -1).flatten(0, 3).index_select(0, every)
        return SpanVectors(every // tiles.cells, *tiles.spans(every % tiles.cells), logits.softmax(-1))

    def scored(self, states: TokenStates) -> ScoredCells:
        tiles = Tiles.cut(states.words.shape[1], self.max_width)
        words = self.dropout(states.words.to(self.projection.weight.dtype))
        firsts, lasts = (with_one(half) for half in self.hidden_dropout(self.projection(words).relu()).chunk(2, -1))
        classes, size = self.product.shape[:2]
        # s' U for every class at once, then one product with the ends for all classes of a tile.
        left = firsts @ self.product.permute(1, 0, 2).reshape(size, classes * size)
        left = tiles.starts(left).reshape(words.shape[0], tiles.count, tiles.rows * classes, size)
        logits = (left @ tiles.ends(lasts).transpose(-1, -2)).float()
        logits = logits.view(words.shape[0], tiles.count, tiles.rows, classes, tiles.columns)
        if self.widths is not None and self.of_width is not None:
            of_width = self.of_width(self.hidden_dropout(self.widths.weight)).float()
            place = tiles.offset(logits.device).clamp(0, len(of_width) - 1)
            logits = logits + of_width.index_select(0, place.view(-1)).view(*place.shape, classes).transpose(1, 2)
        return ScoredCells(tiles, logits, tiles.inside(states.mask))


def with_one(vectors: Tensor) -> Tensor:
    """With a 1 behind the last component.

    >>> with_one(torch.zeros(1, 2))
    tensor([[0., 0., 1.]])
    """
    return nn.functional.pad(vectors, (0, 1), value=1.0)
