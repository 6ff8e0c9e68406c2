"""The three-part representation of spans, against literal concatenation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from spanwise.spans.boundary_mlp import BoundaryMlp
from spanwise.spans.pooling import Maxima

SIZE, LENGTHS = 6, [5, 2, 7]
SPANS = [(0, 0, 5), (0, 1, 3), (0, 4, 5), (1, 0, 1), (1, 1, 2), (1, 0, 2), (2, 2, 6), (2, 6, 7), (2, 0, 7)]


def make(outer: bool, dropout: float = 0.0) -> BoundaryMlp:
    torch.manual_seed(1)
    mlp = BoundaryMlp(SIZE, 3, dropout, outer=outer)
    if mlp.rims is not None:
        torch.nn.init.normal_(mlp.rims)
    return mlp


def words() -> Tensor:
    values = torch.randn(3, 9, SIZE, generator=torch.Generator().manual_seed(2))
    for number, length in enumerate(LENGTHS):
        values[number, length:] = 1e4  # what stands behind a sentence's end must not matter
    return values


def literal(mlp: BoundaryMlp, states: Tensor) -> Tensor:
    rows = []
    for number, start, end in SPANS:
        own = states[number, : LENGTHS[number]]
        left, right = own[start], own[end - 1]
        if mlp.rims is not None:
            left = own[start - 1] if start > 0 else mlp.rims[0]
            right = own[end] if end < len(own) else mlp.rims[1]
        rows.append(torch.cat((own[start:end].amax(0), left, right)))
    return mlp.out(torch.nn.functional.gelu(mlp.inner(torch.stack(rows))))


def scored(mlp: BoundaryMlp, states: Tensor) -> Tensor:
    sentence, start, end = torch.tensor(SPANS).unbind(1)
    return mlp(states, Maxima(states, states.shape[1]), torch.tensor(LENGTHS), (sentence, start, end))


@pytest.mark.parametrize("outer", [False, True])
def test_values_and_gradients_are_those_of_the_concatenation(outer: bool) -> None:
    mlp, states = make(outer), words().requires_grad_()
    ours, expected = scored(mlp, states), literal(mlp, states)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
    weights = torch.randn(ours.shape)
    leaves = [states, *mlp.parameters()]
    for one, other in zip(
        torch.autograd.grad((ours * weights).sum(), leaves),
        torch.autograd.grad((expected * weights).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("outer", [False, True])
def test_dropout_acts_in_training_only(outer: bool) -> None:
    mlp, states = make(outer, dropout=0.5), words()
    assert not torch.equal(scored(mlp, states), scored(mlp, states))
    mlp.eval()
    torch.testing.assert_close(scored(mlp, states), literal(mlp, states), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("length", [0, 4])
def test_no_spans(outer: bool, length: int) -> None:
    none, states = torch.empty(0, dtype=torch.long), torch.zeros(2, length, SIZE)
    found = make(outer)(states, Maxima(states, length), torch.zeros(2, dtype=torch.long), (none, none, none))
    assert found.shape == (0, 3)
