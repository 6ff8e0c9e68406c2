"""Scores of spans from the maximum over their words and two words at their boundaries (Locate and Label, equations 2 to 5)."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from spanwise.spans.pooling import Maxima


class BoundaryMlp(nn.Module):
    """Two linear layers with a GELU between them over [maximum; left word; right word] of each span.

    The boundary words are the span's first and last or, ``outer``, those before and behind it; before a sentence's first word
    and behind its last there is a learned vector. The first layer is computed as the sum of its three parts, that of the
    boundary words once per word: a word bounds many spans. Dropout falls on words and maxima, so spans that share a boundary
    word share its mask.
    """

    def __init__(self, width: int, outputs: int, dropout: float, *, outer: bool = False) -> None:
        super().__init__()
        self.inner = nn.Linear(3 * width, width)
        self.out = nn.Linear(width, outputs)
        self.rims = nn.Parameter(torch.zeros(2, width)) if outer else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Tensor, maxima: Maxima, lengths: Tensor, spans: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """``words`` [B, T, d] with their ``maxima`` and the sentences' ``lengths`` [B]; S spans to [S, outputs] in float32."""
        scores: Tensor = self.out(self.hidden(words, maxima, lengths, spans))
        return scores.float()

    def hidden(self, words: Tensor, maxima: Maxima, lengths: Tensor, spans: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """What the second layer reads: [S, width]."""
        sentence, start, end = spans
        weight = self.inner.weight
        of_maximum, of_left, of_right = weight.chunk(3, 1)
        # One product for both roles of a word; row 2w is word w on the left, row 2w + 1 on the right.
        roles = F.linear(self.dropout(words.to(weight.dtype)), torch.cat((of_left, of_right))).float()
        roles = roles.view(-1, weight.shape[0])
        first, longest = sentence * words.shape[1], words.shape[1]
        if self.rims is None:
            left, right = roles.index_select(0, 2 * (first + start)), roles.index_select(0, 2 * (first + end) - 1)
        else:
            before, behind = F.linear(self.dropout(self.rims), of_left)[0], F.linear(self.dropout(self.rims), of_right)[1]
            left = roles.index_select(0, 2 * (first + (start - 1).clamp(min=0)))
            left = torch.where((start == 0).unsqueeze(1), before.float(), left)
            right = roles.index_select(0, 2 * (first + end.clamp(max=longest - 1)) + 1)
            right = torch.where((end == lengths.index_select(0, sentence)).unsqueeze(1), behind.float(), right)
        pooled = self.dropout(maxima(sentence, start, end).to(weight.dtype))
        hidden = F.linear(pooled, of_maximum, self.inner.bias).float() + left + right
        return F.gelu(hidden).to(weight.dtype)
