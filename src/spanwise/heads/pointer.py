"""GlobalPointer and Efficient GlobalPointer (Su et al. 2022): a score for every span and type, each span by its first and last
word alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import log
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.heads.base import Labels, Losses, ScoredSpans, SpanVectors
from spanwise.heads.span_head import SpanHead, SpanSettings
from spanwise.losses.imbalance import binary_cross_entropy, class_imbalance
from spanwise.spans.rotary import Rotary
from spanwise.spans.tiles import Tiles

LOSSES = {"imbalance": class_imbalance, "binary": binary_cross_entropy}


class PointerSettings(SpanSettings):
    """What may be set; the defaults are the paper's, and all widths are scored unless ``max_width`` is given.

    ``rotation`` and ``loss: binary`` are its ablations (section 4.3). The paper keeps what scores above 0, which is a
    ``threshold`` of 0.5 here, for scores are shown as probabilities.
    """

    several_types: ClassVar[bool] = True

    size: int = Field(default=64, ge=2)  # of the vectors that are multiplied
    rotation: bool = True
    loss: Literal["imbalance", "binary"] = "imbalance"
    threshold: float = Field(default=0.5, gt=0.0, lt=1.0)
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)

    @field_validator("size")
    @classmethod
    def _even(cls, size: int) -> int:
        if size % 2:
            raise ValueError("must be even, for rotation turns pairs of components")
        return size


class Pointer(SpanHead):
    """What both have in common: scores in tiles, the loss over all of them, and what lies above the threshold.

    The loss is that of a sentence and type, and its mean is over both (section 3.4).
    """

    settings_class = PointerSettings
    settings: PointerSettings

    def __init__(self, labels: Labels, settings: PointerSettings) -> None:
        super().__init__(labels, settings)
        self.dropout = nn.Dropout(settings.dropout)
        self.scale = settings.size**-0.25  # of queries and of keys: before the product, so that half precision has room for it
        self.rotary = Rotary(settings.size, self.scale) if settings.rotation else None
        self.threshold: float | Tensor = settings.threshold

    def set_threshold(self, threshold: float) -> float:
        before, self.threshold = float(self.threshold), threshold
        return before

    @property
    def bar(self) -> float | Tensor:
        """The score, before it is made a probability, at the threshold (a tensor where it is an input of a graph)."""
        odds = self.threshold / (1 - self.threshold)
        return odds.log() if isinstance(odds, Tensor) else log(odds)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: PointerSettings) -> Pointer:
        return cls(encoder.width, labels, settings)  # type: ignore[arg-type, call-arg]

    @abstractmethod
    def scores(self, words: Tensor, tiles: Tiles) -> Tensor:
        """The score of every cell for every type: ``words`` [B, T, d] to [B, C, count, rows, columns] in float32."""

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """With gold its packed spans and labels; scoring needs nothing."""
        return self.gold(sentences) if gold else {}

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        tiles, scores, inside = self._scored(states)
        types = len(self.labels.entities)
        group = targets["sentence"] * types + targets["label"]
        positives = group * tiles.cells + tiles.place(targets["start"], targets["end"])
        values = LOSSES[self.settings.loss](scores, inside, positives)
        return Losses(values.sum(1), states.mask.any(1) * float(types))

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        tiles, scores, inside = self._scored(states)
        found = ((scores > self.bar) & inside).reshape(-1).nonzero().squeeze(1)
        group = found // tiles.cells
        start, end = tiles.spans(found % tiles.cells)
        types = len(self.labels.entities)
        return ScoredSpans(group // types, start, end, group % types, scores.reshape(-1).index_select(0, found).sigmoid())

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Types are judged each by itself; that none holds is as probable as that the likeliest does not."""
        tiles, scores, inside = self._scored(states)
        every = inside.reshape(-1).nonzero().squeeze(1)
        scores = scores.flatten(2).transpose(1, 2).flatten(0, 1).index_select(0, every)  # [S, C]
        chances = torch.cat((scores, -scores.amax(1, keepdim=True)), 1).sigmoid()
        return SpanVectors(every // tiles.cells, *tiles.spans(every % tiles.cells), chances)

    def _scored(self, states: TokenStates) -> tuple[Tiles, Tensor, Tensor]:
        tiles = Tiles.cut(states.words.shape[1], self.max_width)
        return tiles, self.scores(self.dropout(states.words), tiles), tiles.inside(states.mask).unsqueeze(1)

    def _turned(self, vectors: Tensor) -> Tensor:
        """Queries and keys as they are multiplied: turned, and each with its share of the 1 / sqrt(size), in float32."""
        turned: Tensor = vectors.float() * self.scale if self.rotary is None else self.rotary(vectors)
        return turned


class GlobalPointer(Pointer):
    """A query and a key of its own for every type: s(i, j) = (R_i q_i) . (R_j k_j) / sqrt(size)."""

    def __init__(self, width: int, labels: Labels, settings: PointerSettings) -> None:
        super().__init__(labels, settings)
        self.projection = nn.Linear(width, len(labels.entities) * 2 * settings.size)

    def scores(self, words: Tensor, tiles: Tiles) -> Tensor:
        types, size = len(self.labels.entities), self.settings.size
        projected = self.projection(words.to(self.projection.weight.dtype)).view(*words.shape[:2], types, 2, size)
        # Turned together: one pass over twice the vectors costs less than two passes.
        queries, keys = self._turned(projected).unbind(3)
        starts, ends = tiles.starts(queries), tiles.ends(keys)  # [B, count, rows or columns, C, size]
        return (starts.permute(0, 3, 1, 2, 4) @ ends.permute(0, 3, 1, 4, 2)).float()


class EfficientGlobalPointer(Pointer):
    """One query and key for all types, and what each type adds for a first and for a last word (section 3.3).

    s(i, j) = (R_i q_i) . (R_j k_j) / sqrt(size) + (u . [q_i; k_i] + b) / 2 + (v . [q_j; k_j] + c) / 2, with u, b, v and c of
    the type: another type costs 4 * size + 2 weights. Equation 7 leaves out the square root, the halves, the rotation, b and c.
    """

    def __init__(self, width: int, labels: Labels, settings: PointerSettings) -> None:
        super().__init__(labels, settings)
        self.projection = nn.Linear(width, 2 * settings.size)
        self.typing = nn.Linear(2 * settings.size, 2 * len(labels.entities))

    def scores(self, words: Tensor, tiles: Tiles) -> Tensor:
        size = self.settings.size
        projected = self.projection(words.to(self.projection.weight.dtype))
        queries, keys = self._turned(projected.view(*words.shape[:2], 2, size)).unbind(2)
        common = (tiles.starts(queries) @ tiles.ends(keys).transpose(-1, -2)).float()  # [B, count, rows, columns]
        first, last = (self.typing(projected).float() / 2).chunk(2, -1)  # [B, T, C]
        # Copied while small: a sum takes over the order of its terms in memory, and the types come before the cells.
        starts, ends = (side.permute(0, 3, 1, 2).contiguous() for side in (tiles.starts(first), tiles.ends(last)))
        return common.unsqueeze(1) + starts.unsqueeze(-1) + ends.unsqueeze(-2)
