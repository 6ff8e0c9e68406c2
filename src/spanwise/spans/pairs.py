"""Two spans of a sentence and what stands between them, made into one vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from spanwise.spans.matching import PackedSpans
from spanwise.spans.pooling import Maxima


class PairLayer(nn.Module):
    """A hidden layer over [first span; second span; the words between], with a GELU behind it.

    A span is its first word, its last word, the maximum over its words, and an embedding of its label; the words between are
    their maximum (SpERT, Eberts and Ulges 2020, section 3.2), and nothing where the spans touch or overlap. The layer is
    computed as the sum of its parts, those of a span once for each of its two roles: a span is in many pairs.
    """

    def __init__(self, width: int, labels: int, label_size: int = 25, hidden: int | None = None) -> None:
        super().__init__()
        hidden = width if hidden is None else hidden
        self.labels = nn.Embedding(labels, label_size)
        self.of_spans = nn.Linear(3 * width + label_size, 2 * hidden)
        self.of_between = nn.Linear(width, hidden, bias=False)

    def forward(self, words: Tensor, spans: PackedSpans, label: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """``words`` [B, T, d], S spans with labels, and P pairs of places among them, to [P, hidden]."""
        words = words.to(self.of_between.weight.dtype)
        sentence, start, end = spans
        length, width = words.shape[1:]
        flat, base, maxima = words.reshape(-1, width), sentence * length, Maxima(words, length)
        parts = (
            flat.index_select(0, base + start),
            flat.index_select(0, base + end - 1),
            maxima(sentence, start, end),
            self.labels(label),
        )
        as_first, as_second = self.of_spans(torch.cat(parts, 1)).chunk(2, 1)
        low, high = torch.minimum(end[first], end[second]), torch.maximum(start[first], start[second])
        apart = low < high
        between = maxima(sentence[first], low.where(apart, 0), high.where(apart, 1))
        hidden = as_first.index_select(0, first) + as_second.index_select(0, second)
        hidden = hidden + self.of_between(between * apart.unsqueeze(1))
        return nn.functional.gelu(hidden)
