"""Attention pooling, compared with the formulas of DSpERT's appendix A."""

from __future__ import annotations

from typing import Literal

import pytest
import torch

from spanwise.spans.attention_pooling import AttentionPooling
from spanwise.spans.blocks import ChosenSpans


@pytest.mark.parametrize("kind", ["multiplicative", "additive"])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_pooling_follows_the_formulas(kind: Literal["multiplicative", "additive"], scale: float) -> None:
    """Also if all words of a span score far below other words of the sentence."""
    torch.manual_seed(2)
    pool, words = AttentionPooling(4, kind), torch.randn(2, 9, 4)
    with torch.no_grad():
        pool.outer.weight.mul_(scale)
        start, end = torch.tensor([[0, 3, 8], [2, 2, 0]]), torch.tensor([[9, 5, 9], [3, 7, 2]])
        actual = pool(words, ChosenSpans(9, start, end, 9)).view(2, 3, 4)
        for sentence in range(2):
            for span in range(3):
                states = words[sentence, start[sentence, span] : end[sentence, span]]
                inputs = states
                if pool.extra_state is not None:
                    inputs = torch.cat((states, pool.extra_state.expand(len(states), -1)), 1)
                weights = (pool.outer.weight @ torch.tanh(pool.inner.weight @ inputs.T)).softmax(1)
                torch.testing.assert_close(actual[sentence, span], (weights @ states)[0], rtol=1e-4, atol=1e-5)
