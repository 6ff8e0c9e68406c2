"""Pooling of packed spans against literal loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from spanwise.spans.candidates import grid, packed
from spanwise.spans.pooling import larger, max_pool, mean_pool

LENGTHS = [11, 1, 7]


def spans(width: int) -> tuple[Tensor, Tensor, Tensor]:
    sentence, start, end = (torch.from_numpy(column) for column in packed(grid(np.array(LENGTHS), width)))
    return sentence, start, end


def states(dtype: torch.dtype = torch.float32) -> Tensor:
    """Random states with NaN behind each sentence's end."""
    generator = torch.Generator().manual_seed(4)
    words = torch.randn(3, 11, 5, generator=generator).to(dtype)
    for number, length in enumerate(LENGTHS):
        words[number, length:] = torch.nan
    return words.requires_grad_()


def looped(words: Tensor, places: tuple[Tensor, Tensor, Tensor], kind: str) -> Tensor:
    rows = zip(*(column.tolist() for column in places), strict=True)
    chosen = (words[number, start:end] for number, start, end in rows)
    return torch.stack([span.amax(0) if kind == "max" else span.float().mean(0) for span in chosen])


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 9, 11, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_max_is_exactly_that_of_a_loop(width: int, dtype: torch.dtype) -> None:
    words, places = states(dtype), spans(width)
    assert torch.equal(max_pool(words, *places, width), looped(words, places, "max"))


@pytest.mark.parametrize("width", [1, 2, 5, 8, 11])
def test_gradients_are_those_of_a_loop(width: int) -> None:
    words, places = states(), spans(width)
    weights = torch.randn(len(places[0]), 5)
    (ours,) = torch.autograd.grad((max_pool(words, *places, width) * weights).sum(), words)
    (literal,) = torch.autograd.grad((looped(words, places, "max") * weights).sum(), words)
    torch.testing.assert_close(ours, literal)


def test_mean_is_that_of_a_loop_with_its_gradients() -> None:
    words, places = states(), spans(6)
    ours, literal = mean_pool(words, *places), looped(words, places, "mean")
    torch.testing.assert_close(ours, literal)
    inside = torch.arange(11).unsqueeze(0) < torch.tensor(LENGTHS).unsqueeze(1)
    (one,), (other,) = (torch.autograd.grad((pooled**2).sum(), words) for pooled in (ours, literal))
    torch.testing.assert_close(one[inside], other[inside])


def test_no_spans_give_no_rows() -> None:
    none = torch.zeros(0, dtype=torch.long)
    assert max_pool(torch.zeros(2, 3, 4), none, none, none, 2).shape == (0, 4)
    assert max_pool(torch.zeros(2, 0, 4), none, none, none, 2).shape == (0, 4)


def test_equal_values_share_one_gradient() -> None:
    one, other = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    larger(one, other).sum().backward()
    assert one.grad is not None
    assert other.grad is not None
    assert torch.equal(one.grad + other.grad, torch.ones(3))
