"""The three-part representation of spans, compared with a concatenation."""

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
    if mlp.edges is not None:
        torch.nn.init.normal_(mlp.edges)
    return mlp


def random_states() -> Tensor:
    values = torch.randn(3, 9, SIZE, generator=torch.Generator().manual_seed(2))
    for sentence, length in enumerate(LENGTHS):
        values[sentence, length:] = 1e4  # padding must not matter
    return values


def reference(mlp: BoundaryMlp, states: Tensor) -> Tensor:
    rows = []
    for sentence, start, end in SPANS:
        words = states[sentence, : LENGTHS[sentence]]
        left, right = words[start], words[end - 1]
        if mlp.edges is not None:
            left = words[start - 1] if start > 0 else mlp.edges[0]
            right = words[end] if end < len(words) else mlp.edges[1]
        rows.append(torch.cat((words[start:end].amax(0), left, right)))
    return mlp.out(torch.nn.functional.gelu(mlp.inner(torch.stack(rows))))


def score(mlp: BoundaryMlp, states: Tensor) -> Tensor:
    sentence, start, end = torch.tensor(SPANS).unbind(1)
    return mlp(states, Maxima(states, states.shape[1]), torch.tensor(LENGTHS), (sentence, start, end))


@pytest.mark.parametrize("outer", [False, True])
def test_values_and_gradients_equal_those_of_the_concatenation(outer: bool) -> None:
    mlp, states = make(outer), random_states().requires_grad_()
    ours, expected = score(mlp, states), reference(mlp, states)
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
    mlp, states = make(outer, dropout=0.5), random_states()
    assert not torch.equal(score(mlp, states), score(mlp, states))
    mlp.eval()
    torch.testing.assert_close(score(mlp, states), reference(mlp, states), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("length", [0, 4])
def test_no_spans(outer: bool, length: int) -> None:
    none, states = torch.empty(0, dtype=torch.long), torch.zeros(2, length, SIZE)
    scores = make(outer)(states, Maxima(states, length), torch.zeros(2, dtype=torch.long), (none, none, none))
    assert scores.shape == (0, 3)
