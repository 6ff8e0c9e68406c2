"""Vectors of pairs of spans with the words between them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spanwise.spans.matching import PackedSpans
from spanwise.spans.pooling import Maxima


class PairLayer(nn.Module):
    """A hidden layer with GELU over [first span; second span; words between them].

    A span is its first word, its last word, the maximum over its words, and an embedding of its label.
    The words between are represented by their maximum (SpERT, Eberts and Ulges 2020, section 3.2), or
    zeros if the spans touch or overlap. The layer is computed as the sum of its parts; the parts of a
    span are computed once for each of its two roles, because a span is in many pairs.
    """

    def __init__(self, width: int, labels: int, label_size: int = 25, hidden: int | None = None) -> None:
        super().__init__()
        hidden = width if hidden is None else hidden
        self.labels = nn.Embedding(labels, label_size)
        self.span_layer = nn.Linear(3 * width + label_size, 2 * hidden)
        self.between_layer = nn.Linear(width, hidden, bias=False)

    def forward(self, words: Tensor, spans: PackedSpans, label: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Vectors [P, hidden] of P pairs; ``first`` and ``second`` [P] are indices of the S spans over ``words`` [B, T, d]."""
        words = words.to(self.between_layer.weight.dtype)
        sentence, start, end = spans
        length, width = words.shape[1:]
        flat, offset, maxima = words.reshape(-1, width), sentence * length, Maxima(words, length)
        parts = (
            flat.index_select(0, offset + start),
            flat.index_select(0, offset + end - 1),
            maxima(sentence, start, end),
            self.labels(label),
        )
        as_first, as_second = self.span_layer(torch.cat(parts, 1)).chunk(2, 1)
        low, high = torch.minimum(end[first], end[second]), torch.maximum(start[first], start[second])
        has_gap = low < high
        between = maxima(sentence[first], low.where(has_gap, 0), high.where(has_gap, 1))
        hidden = as_first.index_select(0, first) + as_second.index_select(0, second)
        hidden = hidden + self.between_layer(between * has_gap.unsqueeze(1))
        return nn.functional.gelu(hidden)
