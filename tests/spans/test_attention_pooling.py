"""Attention pooling by the formulas of DSpERT's appendix A."""

from __future__ import annotations

from typing import Literal

import pytest
import torch

from spanwise.spans.attention_pooling import AttentionPooling
from spanwise.spans.blocks import ChosenSpans


@pytest.mark.parametrize("kind", ["multiplicative", "additive"])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_the_formulas(kind: Literal["multiplicative", "additive"], scale: float) -> None:
    """Also where the words of a span all score far below others of the sentence."""
    torch.manual_seed(2)
    pool, words = AttentionPooling(4, kind), torch.randn(2, 9, 4)
    with torch.no_grad():
        pool.outer.weight.mul_(scale)
        start, end = torch.tensor([[0, 3, 8], [2, 2, 0]]), torch.tensor([[9, 5, 9], [3, 7, 2]])
        found = pool(words, ChosenSpans(9, start, end, 9)).view(2, 3, 4)
        for number in range(2):
            for place in range(3):
                own = words[number, start[number, place] : end[number, place]]
                inner = own if pool.beside is None else torch.cat((own, pool.beside.expand(len(own), -1)), 1)
                weights = (pool.outer.weight @ torch.tanh(pool.inner.weight @ inner.T)).softmax(1)
                torch.testing.assert_close(found[number, place], (weights @ own)[0], rtol=1e-4, atol=1e-5)
