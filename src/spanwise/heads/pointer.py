"""GlobalPointer and Efficient GlobalPointer (Su et al. 2022)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import log
from typing import Literal

import numpy as np
import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders.base import Encoder, TokenStates
from spanwise.encoders.fixed_shapes import SizeTable, pad_to
from spanwise.heads.abilities import HasFixedShapes, HasSpanProbabilities, HasThreshold, LearnsPartial, LearnsProbabilities
from spanwise.heads.base import Labels, Losses, OnnxGraph, ScoredSpans, SpanVectors
from spanwise.heads.partial import Known
from spanwise.heads.sentence_cache import SentenceCache
from spanwise.heads.span_head import pack_soft_spans, pad_soft_spans, row_sizes
from spanwise.heads.units import NO_ONNX, UnitHead, UnitSettings
from spanwise.losses.imbalance import binary_cross_entropy, class_imbalance
from spanwise.losses.partial import open_weight
from spanwise.losses.smoothing import SoftSpans
from spanwise.losses.teaching import TaughtSentence
from spanwise.spans.matching import PackedSpans
from spanwise.spans.rotary import Rotary
from spanwise.spans.tiles import Tiles

LOSSES: dict[str, Callable[..., Tensor]] = {"imbalance": partial(class_imbalance, padded=True), "binary": binary_cross_entropy}


class PointerSettings(UnitSettings):
    """Settings of both pointers; the defaults are the paper's.

    Without ``max_width``, spans of all widths are scored. ``rotation: false`` and ``loss: binary``
    are the paper's ablations (section 4.3). Scores are reported as probabilities: the paper's cutoff
    of 0 is a ``threshold`` of 0.5 here.
    """

    size: int = Field(default=64, ge=2, description="size of queries and keys; even")
    rotation: bool = Field(default=True, description="use rotary position embeddings")
    loss: Literal["imbalance", "binary"] = Field(
        default="imbalance", description="imbalance: the paper's loss; binary: a cross-entropy per span and type"
    )
    threshold: float = Field(default=0.5, gt=0.0, lt=1.0, description="minimum probability of an entity")
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0, description="dropout on the words")

    @field_validator("size")
    @classmethod
    def _check_size(cls, size: int) -> int:
        if size % 2:
            raise ValueError("expected an even number, because rotation acts on pairs of components")
        return size

    @property
    def allows_several_types(self) -> bool:
        return True


class Pointer(UnitHead, HasThreshold, HasSpanProbabilities, LearnsProbabilities, HasFixedShapes, LearnsPartial):
    """Base of both pointers: a score for every span and type, and a threshold.

    The loss of a type in a sentence is averaged over sentences and types (section 3.4).
    """

    settings_class = PointerSettings
    settings: PointerSettings

    def __init__(self, labels: Labels, settings: PointerSettings) -> None:
        super().__init__(labels, settings)
        self.dropout = nn.Dropout(settings.dropout)
        self.scale = settings.size**-0.25  # of queries and keys; before the product, which could overflow in half precision
        self.rotary = Rotary(settings.size, self.scale) if settings.rotation else None
        self.threshold = settings.threshold
        self._soft = SentenceCache(self._soft_spans)

    def set_threshold(self, threshold: float) -> float:
        previous, self.threshold = self.threshold, threshold
        return previous

    @property
    def onnx(self) -> OnnxGraph | str:
        if self.settings.unit == "subwords":
            return NO_ONNX
        return OnnxGraph.of_spans(self.score, self.decoding, self.max_width, has_threshold_input=True)

    @classmethod
    def build(cls, encoder: Encoder, labels: Labels, settings: PointerSettings) -> Pointer:
        return cls(encoder.width, labels, settings).read_units(encoder)  # type: ignore[arg-type, call-arg]

    @abstractmethod
    def scores(self, words: Tensor, tiles: Tiles) -> Tensor:
        """Scores of all cells for each type: ``words`` [B, T, d] to [B, C, count, rows, columns] in float32."""

    def targets(
        self, sentences: Sequence[Sentence], *, gold: bool, generator: np.random.Generator | None = None
    ) -> dict[str, Tensor]:
        """Packed gold spans and labels, with teachers also their probabilities as ``mass``. For scoring, ``word_targets``."""
        if not gold:
            return self.word_targets(sentences)
        has_teachers = any(isinstance(sentence, TaughtSentence) for sentence in sentences)
        rows = pack_soft_spans(self.target_spans(sentences)) if has_teachers else self.gold(sentences)
        return rows | self.known_targets(sentences)

    def target_spans(self, sentences: Sequence[Sentence]) -> list[SoftSpans]:
        return [self._soft(sentence) for sentence in sentences]

    @property
    def is_recordable(self) -> bool:
        return self.settings.loss == "imbalance"

    def size_table(self, sentences: Sequence[Sentence]) -> SizeTable:
        return row_sizes(self, sentences)

    def pad_targets(self, targets: Mapping[str, Tensor], sizes: Mapping[str, int], shape: torch.Size) -> dict[str, Tensor]:
        """Add rows of a sentence after the last, which the loss takes for padding, or rows with a mass of 0."""
        if "mass" in targets:
            return pad_soft_spans(targets, sizes["rows"])
        values = {"sentence": shape[0], "start": 0, "end": 1, "label": 0}
        return {name: pad_to(tensor, (sizes["rows"],), values[name]) for name, tensor in targets.items()}

    def loss(self, states: TokenStates, targets: Mapping[str, Tensor]) -> Losses:
        tiles, scores, inside = self._score_cells(states)
        types = len(self.labels.entities)
        group = targets["sentence"] * types + targets["label"]
        positives = group * tiles.cells + tiles.index(targets["start"], targets["end"])
        open_terms = self._open_terms(targets, tiles, scores)
        values = LOSSES[self.settings.loss](scores, inside, positives, targets.get("mass"), open_terms)
        return Losses(values.sum(1), states.mask.any(1) * float(types))

    def _open_terms(self, targets: Mapping[str, Tensor], tiles: Tiles, scores: Tensor) -> Tensor | None:
        """The open spans for the loss, in the shape of the scores: weights, or probabilities of unmarked entities."""
        if (known := Known.select(targets)) is None:
            return None
        is_open = known.is_open(*tiles.spans(torch.arange(tiles.cells, device=scores.device))).view(scores.shape)
        if self.settings.loss == "binary":
            return known.log_masses(is_open)
        share = known.marked_share.view(-1, *(1,) * (scores.ndim - 1))
        return open_weight(scores, share).masked_fill(~is_open, 0.0)

    def score(self, states: TokenStates, targets: Mapping[str, Tensor]) -> ScoredSpans:
        tiles, scores, inside = self._score_cells(states)
        cutoff = logit(targets.get("threshold", self.threshold))  # in ONNX, the threshold is an input
        cells = ((scores > cutoff) & inside).reshape(-1).nonzero().squeeze(1)
        group = cells // tiles.cells
        start, end = tiles.spans(cells % tiles.cells)
        types = len(self.labels.entities)
        log_odds = scores.reshape(-1).index_select(0, cells)
        scored = ScoredSpans(group // types, start, end, group % types, log_odds.sigmoid(), log_odds=log_odds)
        return self.scored_words(scored, targets)

    def span_probabilities(self, states: TokenStates, targets: Mapping[str, Tensor]) -> SpanVectors:
        """Types are scored independently; the probability of NONE is 1 minus the highest of them."""
        tiles, scores, inside = self._score_cells(states)
        cells = inside.reshape(-1).nonzero().squeeze(1)
        scores = scores.flatten(2).transpose(1, 2).flatten(0, 1).index_select(0, cells)  # [S, C]
        probabilities = torch.cat((scores, -scores.amax(1, keepdim=True)), 1).sigmoid()
        spans = SpanVectors(cells // tiles.cells, *tiles.spans(cells % tiles.cells), probabilities)
        return self.word_vectors(spans, targets)

    def _soft_spans(self, sentence: Sentence) -> SoftSpans:
        start, end, label = self._gold(sentence).T
        gold = SoftSpans(start, end, label, np.ones(len(start), np.float32))
        return self.with_teacher(gold, sentence, has_one_type=False)

    def span_scores(self, states: TokenStates, spans: PackedSpans) -> Tensor:
        """The scores of all types for given spans: [S, C] in float32."""
        tiles, scores, _ = self._score_cells(states)
        return scores.flatten(2)[spans.sentence, :, tiles.index(spans.start, spans.end)]

    def _score_cells(self, states: TokenStates) -> tuple[Tiles, Tensor, Tensor]:
        tiles = Tiles.cut(states.words.shape[1], self.max_width)
        return tiles, self.scores(self.dropout(states.words), tiles), tiles.inside(states.mask).unsqueeze(1)

    def _rotate(self, vectors: Tensor) -> Tensor:
        """Rotate and scale queries or keys, in float32."""
        rotated: Tensor = vectors.float() * self.scale if self.rotary is None else self.rotary(vectors)
        return rotated


class GlobalPointer(Pointer):
    """Pointer that scores every span by a product of a query and a key, separate for each type.

    s(i, j) = (R_i q_i) . (R_j k_j) / sqrt(size), where R_i is a rotation by the position i. All spans
    of a sentence are learned at once with a loss for class imbalance.

    Paper: Su et al., "Global Pointer: Novel Efficient Span-based Approach for Named Entity
    Recognition", 2022.

    Use it for nested or overlapping entities, and if a span may have several types. Prefer
    ``EfficientGlobalPointer`` if there are many types, and ``Biaffine`` if each span has one type.

    >>> head = GlobalPointer(8, Labels(("Drug", "Place")), PointerSettings(decoding="nested"))
    >>> states = TokenStates(torch.zeros(1, 3, 8), torch.zeros(1, 8), torch.ones(1, 3, dtype=torch.bool))
    >>> head.set_threshold(0.01)
    0.5
    >>> len(head.score(states, {}).start)  # 6 spans, 2 types
    12
    """

    def __init__(self, width: int, labels: Labels, settings: PointerSettings) -> None:
        super().__init__(labels, settings)
        self.projection = nn.Linear(width, len(labels.entities) * 2 * settings.size)

    def scores(self, words: Tensor, tiles: Tiles) -> Tensor:
        types, size = len(self.labels.entities), self.settings.size
        projected = self.projection(words.to(self.projection.weight.dtype)).view(*words.shape[:2], types, 2, size)
        # One rotation of queries and keys together costs less than two.
        queries, keys = self._rotate(projected).unbind(3)
        starts, ends = tiles.starts(queries), tiles.ends(keys)  # [B, count, rows or columns, C, size]
        return (starts.permute(0, 3, 1, 2, 4) @ ends.permute(0, 3, 1, 4, 2)).float()


class EfficientGlobalPointer(Pointer):
    """Pointer with one query and key for all types; each type adds a term for the first and the last word.

    s(i, j) = (R_i q_i) . (R_j k_j) / sqrt(size) + (u . [q_i; k_i] + b) / 2 + (v . [q_j; k_j] + c) / 2,
    where u, b, v and c belong to the type: one more type needs 4 * size + 2 weights. Equation 7 omits
    the square root, the halves, the rotation, b and c.

    Paper: Su et al. 2022, section 3.3. Use it instead of ``GlobalPointer`` if there are many types.

    >>> count = lambda head: sum(weight.numel() for weight in head.parameters())
    >>> settings = PointerSettings(decoding="nested")
    >>> two, three = (EfficientGlobalPointer(8, Labels(types), settings) for types in (("A", "B"), ("A", "B", "C")))
    >>> count(three) - count(two)
    258
    """

    def __init__(self, width: int, labels: Labels, settings: PointerSettings) -> None:
        super().__init__(labels, settings)
        self.projection = nn.Linear(width, 2 * settings.size)
        self.typing = nn.Linear(2 * settings.size, 2 * len(labels.entities))

    def scores(self, words: Tensor, tiles: Tiles) -> Tensor:
        size = self.settings.size
        projected = self.projection(words.to(self.projection.weight.dtype))
        queries, keys = self._rotate(projected.view(*words.shape[:2], 2, size)).unbind(2)
        common = (tiles.starts(queries) @ tiles.ends(keys).transpose(-1, -2)).float()  # [B, count, rows, columns]
        first, last = (self.typing(projected).float() / 2).chunk(2, -1)  # [B, T, C]
        # Copied while small: the memory layout of a sum follows its terms, and the types come before the cells.
        starts, ends = (side.permute(0, 3, 1, 2).contiguous() for side in (tiles.starts(first), tiles.ends(last)))
        return common.unsqueeze(1) + starts.unsqueeze(-1) + ends.unsqueeze(-2)


def logit(probability: float | Tensor) -> float | Tensor:
    """The score whose sigmoid is the probability.

    >>> logit(0.5)
    0.0
    """
    odds = probability / (1 - probability)
    return odds.log() if isinstance(odds, Tensor) else log(odds)
