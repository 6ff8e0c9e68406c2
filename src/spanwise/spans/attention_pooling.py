"""Attention pooling over the words of spans (DSpERT, appendix A)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from spanwise.spans.blocks import Blocks


class AttentionPooling(nn.Module):
    """softmax(u' tanh(W H')) H over the words of each span, where H are their states.

    ``additive`` appends a learned vector v to every state before W. The score of a word is the same
    in all spans, so scores are computed once per word, and only the softmax once per span.
    """

    def __init__(self, size: int, kind: Literal["multiplicative", "additive"]) -> None:
        super().__init__()
        self.extra_state = nn.Parameter(torch.empty(size).uniform_(-(size**-0.5), size**-0.5)) if kind == "additive" else None
        self.inner = nn.Linear(size if self.extra_state is None else 2 * size, size, bias=False)
        self.outer = nn.Linear(size, 1, bias=False)

    def forward(self, words: Tensor, blocks: Blocks) -> Tensor:
        """``words`` [B, T, d] to [S, d]."""
        scores = blocks.windows(self.scores(words)).transpose(1, 2).float()
        weights = scores.masked_fill(~blocks.inside, torch.finfo(torch.float32).min).softmax(-1)
        return blocks.packed(weights.to(words.dtype) @ blocks.windows(words))

    def scores(self, words: Tensor) -> Tensor:
        """The attention score of each word: [B, T, 1]."""
        weight = self.inner.weight
        if self.extra_state is None:
            hidden = nn.functional.linear(words, weight)
        else:
            word_weight, extra_weight = weight.chunk(2, dim=1)
            hidden = nn.functional.linear(words, word_weight, extra_weight @ self.extra_state)
        scores: Tensor = self.outer(hidden.tanh())
        return scores
