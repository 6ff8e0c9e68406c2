"""Vectors of pairs of spans with the words between them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from spanwise.spans.matching import PackedSpans
from spanwise.spans.pooling import Maxima

DISTANCE_BUCKETS = 16
LABEL_SIZE = 25  # of the embedding of a span's label


class SpanParts(NamedTuple):
    """The parts of pairs that are computed once per span, and maxima over the words."""

    spans: PackedSpans
    as_first: Tensor  # [S, d]
    as_second: Tensor  # [S, d]
    left: Tensor  # [S, rank]
    right: Tensor  # [S, rank]
    maxima: Maxima


class PairLayer(nn.Module):
    """A hidden layer with GELU over [first span; second span; words between them].

    A span is its first word, its last word, the maximum over its words, and an embedding of its label.
    The words between are represented by their maximum (SpERT, Eberts and Ulges 2020, section 3.2), or
    zeros if the spans touch or overlap. The layer is computed as the sum of its parts; the parts of a
    span are computed once for each of its two roles, because a span is in many pairs.

    ``has_distances`` adds an embedding of order and distance (``distance_buckets``), ``rank`` a product of
    both spans after projections to this size.
    """

    def __init__(self, width: int, labels: int, *, has_distances: bool = False, rank: int = 0) -> None:
        super().__init__()
        self.sizes = [width, width, rank, rank]
        self.labels = nn.Embedding(labels, LABEL_SIZE)
        self.span_layer = nn.Linear(3 * width + LABEL_SIZE, sum(self.sizes))
        self.between_layer = nn.Linear(width, width, bias=False)
        self.distances = nn.Embedding(DISTANCE_BUCKETS, width) if has_distances else None
        self.product = nn.Linear(rank, width, bias=False) if rank else None
        if self.distances is not None:
            nn.init.normal_(self.distances.weight, std=0.02)

    def forward(self, words: Tensor, spans: PackedSpans, label: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Vectors [P, d] of P pairs; ``first`` and ``second`` [P] are indices of the S spans over ``words`` [B, T, d]."""
        return self.pairs(self.span_parts(words, spans, label), first, second)

    def span_parts(self, words: Tensor, spans: PackedSpans, label: Tensor) -> SpanParts:
        """The parts of S spans over ``words`` [B, T, d]; many pairs can be computed from them, some at a time."""
        words = words.to(self.between_layer.weight.dtype)
        sentence, start, end = spans
        length, width = words.shape[1:]
        flat, offset, maxima = words.reshape(-1, width), sentence * length, Maxima(words, length)
        columns = (
            flat.index_select(0, offset + start),
            flat.index_select(0, offset + end - 1),
            maxima(sentence, start, end),
            self.labels(label),
        )
        as_first, as_second, left, right = self.span_layer(torch.cat(columns, 1)).split(self.sizes, 1)
        return SpanParts(spans, as_first, as_second, left, right, maxima)

    def pairs(self, parts: SpanParts, first: Tensor, second: Tensor) -> Tensor:
        """Vectors [P, d] of P pairs of spans."""
        sentence, start, end = parts.spans
        # the words between the spans, from low to high
        low, high = torch.minimum(end[first], end[second]), torch.maximum(start[first], start[second])
        has_gap = low < high
        between = parts.maxima(sentence[first], low.where(has_gap, 0), high.where(has_gap, 1))  # multiplied by 0 without a gap
        # the sum of all parts
        hidden = parts.as_first.index_select(0, first) + parts.as_second.index_select(0, second)
        hidden = hidden + self.between_layer(between * has_gap.unsqueeze(1))
        if self.product is not None:
            hidden = hidden + self.product(parts.left.index_select(0, first) * parts.right.index_select(0, second))
        if self.distances is not None:
            hidden = hidden + self.distances(distance_buckets(start[first], start[second], low, high))
        return nn.functional.gelu(hidden)


def distance_buckets(first: Tensor, second: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The order and distance of pairs of spans as numbers below ``DISTANCE_BUCKETS``.

    ``first`` and ``second`` are the starts of both spans; the words from ``low`` to ``high`` are between
    them. Distances are 0, 1 to 2, 3 to 6, 7 to 14, and so on; overlapping spans have their own bucket.

    >>> first, second = torch.tensor([0, 0, 5, 0]), torch.tensor([1, 0, 0, 9])
    >>> distance_buckets(first, second, torch.tensor([1, 2, 1, 2]), torch.tensor([1, 0, 5, 9])).tolist()
    [1, 8, 11, 4]
    """
    # Half a word more keeps logarithms away from whole numbers, which devices may round differently.
    bucket = ((high - low).clamp(min=0) + 1.5).log2().long().add(1).clamp(max=DISTANCE_BUCKETS // 2 - 1)
    return torch.where(high < low, 0, bucket) + (first >= second) * (DISTANCE_BUCKETS // 2)
