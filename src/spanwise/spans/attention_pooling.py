"""The words of a span averaged by learned weights (DSpERT, appendix A)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from spanwise.spans.blocks import Blocks


class AttentionPooling(nn.Module):
    """softmax(u' tanh(W H')) H over the words of each span, H being their states.

    ``additive`` puts a learned vector v beside every state before W. A word's score is the same in all spans, so scores are
    computed once per word, and only the softmax once per span.
    """

    def __init__(self, size: int, kind: Literal["multiplicative", "additive"]) -> None:
        super().__init__()
        self.beside = nn.Parameter(torch.empty(size).uniform_(-(size**-0.5), size**-0.5)) if kind == "additive" else None
        self.inner = nn.Linear(size if self.beside is None else 2 * size, size, bias=False)
        self.outer = nn.Linear(size, 1, bias=False)

    def forward(self, words: Tensor, blocks: Blocks) -> Tensor:
        """``words`` [B, T, d] to [S, d]."""
        scores = blocks.windows(self.scores(words)).transpose(1, 2).float()
        weights = scores.masked_fill(~blocks.inside, torch.finfo(torch.float32).min).softmax(-1)
        return blocks.packed(weights.to(words.dtype) @ blocks.windows(words))

    def scores(self, words: Tensor) -> Tensor:
        """Of each word: [B, T, 1]."""
        inner = self.inner.weight
        if self.beside is None:
            hidden = nn.functional.linear(words, inner)
        else:
            of_words, of_beside = inner.chunk(2, dim=1)
            hidden = nn.functional.linear(words, of_words, of_beside @ self.beside)
        scores: Tensor = self.outer(hidden.tanh())
        return scores
