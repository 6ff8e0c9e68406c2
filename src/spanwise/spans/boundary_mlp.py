"""Span scores from the maximum over a span's words and two boundary words (Locate and Label, equations 2 to 5)."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from spanwise.spans.pooling import Maxima


class BoundaryMlp(nn.Module):
    """Two linear layers with a GELU between them over [maximum; left word; right word] of each span.

    The boundary words are the first and last word of the span or, with ``outer``, the words before
    and after it; a learned vector replaces those outside the sentence. The first layer is computed
    as the sum of three parts; the parts of boundary words are computed once per word, because a word
    bounds many spans. Dropout applies to words and maxima, so spans that share a boundary word share
    its mask.
    """

    def __init__(self, width: int, outputs: int, dropout: float, *, outer: bool = False) -> None:
        super().__init__()
        self.inner = nn.Linear(3 * width, width)
        self.out = nn.Linear(width, outputs)
        self.edges = nn.Parameter(torch.zeros(2, width)) if outer else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Tensor, maxima: Maxima, lengths: Tensor, spans: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Score S spans, [S, outputs] in float32, from ``words`` [B, T, d], their ``maxima`` and sentence ``lengths`` [B]."""
        scores: Tensor = self.out(self.hidden(words, maxima, lengths, spans))
        return scores.float()

    def hidden(self, words: Tensor, maxima: Maxima, lengths: Tensor, spans: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """The output of the first layer: [S, width]."""
        sentence, start, end = spans
        weight = self.inner.weight
        max_weight, left_weight, right_weight = weight.chunk(3, 1)
        # One product for both roles of a word: row 2w is word w on the left, row 2w + 1 on the right.
        roles = F.linear(self.dropout(words.to(weight.dtype)), torch.cat((left_weight, right_weight))).float()
        roles = roles.view(-1, weight.shape[0])
        first, longest = sentence * words.shape[1], words.shape[1]
        if self.edges is None:
            left, right = roles.index_select(0, 2 * (first + start)), roles.index_select(0, 2 * (first + end) - 1)
        else:
            left_edge = F.linear(self.dropout(self.edges), left_weight)[0]
            right_edge = F.linear(self.dropout(self.edges), right_weight)[1]
            left = roles.index_select(0, 2 * (first + (start - 1).clamp(min=0)))
            left = torch.where((start == 0).unsqueeze(1), left_edge.float(), left)
            right = roles.index_select(0, 2 * (first + end.clamp(max=longest - 1)) + 1)
            right = torch.where((end == lengths.index_select(0, sentence)).unsqueeze(1), right_edge.float(), right)
        pooled = self.dropout(maxima(sentence, start, end).to(weight.dtype))
        hidden = F.linear(pooled, max_weight, self.inner.bias).float() + left + right
        return F.gelu(hidden).to(weight.dtype)
