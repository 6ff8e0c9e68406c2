"""Pooling of packed spans, compared with loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from spanwise.spans.candidates import grid, packed
from spanwise.spans.pooling import elementwise_max, max_pool, mean_pool

LENGTHS = [11, 1, 7]


def all_spans(width: int) -> tuple[Tensor, Tensor, Tensor]:
    sentence, start, end = (torch.from_numpy(column) for column in packed(grid(np.array(LENGTHS), width)))
    return sentence, start, end


def states(dtype: torch.dtype = torch.float32) -> Tensor:
    """Random states with NaN as padding."""
    generator = torch.Generator().manual_seed(4)
    words = torch.randn(3, 11, 5, generator=generator).to(dtype)
    for sentence, length in enumerate(LENGTHS):
        words[sentence, length:] = torch.nan
    return words.requires_grad_()


def pool_in_a_loop(words: Tensor, spans: tuple[Tensor, Tensor, Tensor], kind: str) -> Tensor:
    rows = zip(*(column.tolist() for column in spans), strict=True)
    states = (words[sentence, start:end] for sentence, start, end in rows)
    return torch.stack([span.amax(0) if kind == "max" else span.float().mean(0) for span in states])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_max_equals_that_of_a_loop(dtype: torch.dtype) -> None:
    for width in (1, 2, 3, 4, 5, 8, 9, 11, 64):
        words, spans = states(dtype), all_spans(width)
        assert torch.equal(max_pool(words, *spans, width), pool_in_a_loop(words, spans, "max")), width


def test_gradients_equal_those_of_a_loop() -> None:
    for width in (1, 2, 5, 8, 11):
        words, spans = states(), all_spans(width)
        weights = torch.randn(len(spans[0]), 5)
        (actual,) = torch.autograd.grad((max_pool(words, *spans, width) * weights).sum(), words)
        (expected,) = torch.autograd.grad((pool_in_a_loop(words, spans, "max") * weights).sum(), words)
        torch.testing.assert_close(actual, expected)


def test_mean_and_its_gradients_equal_those_of_a_loop() -> None:
    words, spans = states(), all_spans(6)
    actual, expected = mean_pool(words, *spans), pool_in_a_loop(words, spans, "mean")
    torch.testing.assert_close(actual, expected)
    inside = torch.arange(11).unsqueeze(0) < torch.tensor(LENGTHS).unsqueeze(1)
    (first,), (second,) = (torch.autograd.grad((pooled**2).sum(), words) for pooled in (actual, expected))
    torch.testing.assert_close(first[inside], second[inside])


def test_no_spans() -> None:
    none = torch.zeros(0, dtype=torch.long)
    assert max_pool(torch.zeros(2, 3, 4), none, none, none, 2).shape == (0, 4)
    assert max_pool(torch.zeros(2, 0, 4), none, none, none, 2).shape == (0, 4)


def test_gradients_of_equal_values_sum_to_one() -> None:
    first, second = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    elementwise_max(first, second).sum().backward()
    assert first.grad is not None
    assert second.grad is not None
    assert torch.equal(first.grad + second.grad, torch.ones(3))
