"""The losses of filter and regressor and the soft weights, compared with formulas and hand-worked values."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from spanwise.losses.focal import boundary_loss, focal, open_softmax_focal, soft_weights, softmax_focal


def test_focal_follows_equation_12() -> None:
    logits = torch.tensor([-3.0, -0.5, 0.0, 1.0, 4.0] * 2, dtype=torch.float64)
    positive = torch.tensor([True] * 5 + [False] * 5)
    for gamma in (0.0, 1.0, 2.0):
        expected = []
        for logit, is_positive in zip(logits.tolist(), positive.tolist(), strict=True):
            p = 1 / (1 + exp(-logit))
            expected.append(-((1 - p) ** gamma) * log(p) if is_positive else -(p**gamma) * log(1 - p))
        assert focal(logits, positive, gamma).tolist() == pytest.approx(expected, rel=1e-5)


def test_gamma_0_is_cross_entropy_and_larger_values_reduce_easy_examples() -> None:
    logits, positive = torch.randn(50), torch.rand(50) < 0.5
    plain = torch.nn.functional.binary_cross_entropy_with_logits(logits, positive.float(), reduction="none")
    torch.testing.assert_close(focal(logits, positive, 0.0), plain)
    ratio = focal(torch.tensor([5.0]), torch.tensor([True]), 2.0) / focal(torch.tensor([5.0]), torch.tensor([True]), 0.0)
    assert float(ratio) < 1e-4


@pytest.mark.parametrize("gamma", [0.0, 0.01, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_focal_and_its_gradient_are_finite_for_large_logits(dtype: torch.dtype, gamma: float) -> None:
    logits = torch.tensor([-1e4, -50.0, 0.0, 50.0, 1e4] * 2, dtype=dtype, requires_grad=True)
    values = focal(logits, torch.tensor([True] * 5 + [False] * 5), gamma)
    values.sum().backward()
    assert values.dtype == torch.float32
    assert bool(values.isfinite().all())
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())


@pytest.mark.parametrize("gamma", [0.0, 0.01, 0.5, 1.0, 2.0])
def test_focal_losses_of_classes_have_finite_gradients_where_a_probability_is_rounded_to_1(gamma: float) -> None:
    logits = torch.tensor([[40.0, 0.0], [0.0, 40.0], [17.0, 0.0], [3.0, 0.0]], requires_grad=True)
    classes = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    for values in (softmax_focal(logits, classes, gamma), open_softmax_focal(logits, torch.zeros(4, 1), gamma)):
        (gradient,) = torch.autograd.grad(values.sum(), logits)
        assert bool(values.isfinite().all())
        assert bool(gradient.isfinite().all())


def loss(moves: tuple[float, float], seed: tuple[int, int], gold: tuple[int, int]) -> float:
    return float(boundary_loss(torch.tensor([moves]), *(torch.tensor([boundary]) for boundary in (*seed, *gold))))


@pytest.mark.parametrize(
    ("moves", "seed", "gold", "smooth", "overlap"),
    [
        ((0.0, 0.0), (2, 5), (2, 5), 0.0, 1.0),
        ((-1.0, 2.0), (2, 5), (1, 7), 0.0, 1.0),
        ((0.0, 0.0), (2, 5), (1, 7), 0.5 + 1.5, 3 / 6),
        ((0.5, 0.0), (2, 5), (2, 5), 0.125, 2.5 / 3),  # not rounded
        ((0.0, -4.0), (2, 5), (2, 5), 3.5, 0.0),  # no overlap; the overlap is never negative
        ((9.0, 9.0), (2, 5), (2, 5), 8.5 + 8.5, 0.0),
        ((-0.25, -0.25), (0, 2), (0, 2), 2 * 0.03125, 1.75 / 2.25),  # boundaries outside the sentence are allowed
    ],
)
def test_boundary_loss(
    moves: tuple[float, float], seed: tuple[int, int], gold: tuple[int, int], smooth: float, overlap: float
) -> None:
    assert loss(moves, seed, gold) == pytest.approx(smooth + 1 - overlap)


def test_minimising_the_boundary_loss_finds_the_entity() -> None:
    moves = torch.tensor([[3.0, -4.0]], requires_grad=True)
    boundaries = [torch.tensor([boundary]) for boundary in (2, 6, 1, 7)]
    for _ in range(200):
        (gradient,) = torch.autograd.grad(boundary_loss(moves, *boundaries).sum(), moves)
        assert bool(gradient.isfinite().all())
        moves = (moves - 0.05 * gradient).detach().requires_grad_()
    assert moves[0].tolist() == pytest.approx([-1.0, 1.0], abs=0.05)


def test_soft_weights_follow_equation_11() -> None:
    overlaps = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])
    assert soft_weights(overlaps, 0.7, 1.0).tolist() == pytest.approx([1.0, 0.75, 0.5, 0.75, 1.0])
    assert soft_weights(overlaps, 0.5, 1.0).tolist() == pytest.approx([1.0, 0.75, 0.5, 0.75, 1.0])
    assert soft_weights(overlaps, 0.75, 2.0).tolist() == pytest.approx([1.0, 0.5625, 0.25, 0.5625, 1.0])
    assert soft_weights(overlaps, 1.0, 1.0).tolist() == pytest.approx([1.0, 0.75, 0.5, 0.25, 1.0])  # stage 2
    assert soft_weights(overlaps, 0.7, 0.0).tolist() == [1.0] * 5
