"""Losses with probabilities as targets, compared with sums over all cells in double precision."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from spanwise.losses.imbalance import binary_cross_entropy, class_imbalance
from spanwise.losses.smoothing import SoftSpans
from spanwise.losses.teaching import mix_targets


def cells(seed: int = 0, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Scores [2, 3, 4, 5], a mask of valid cells, and a probability for each cell, 0 for most."""
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(2, 3, 4, 5, generator=generator)
    inside = torch.rand(2, 1, 4, 5, generator=generator) < 0.7
    mass = torch.rand(scores.shape, generator=generator)
    mass = torch.where(torch.rand(scores.shape, generator=generator) < 0.2, mass, 0.0) * inside
    return scores, inside, mass


def imbalance_reference(scores: Tensor, inside: Tensor, mass: Tensor) -> Tensor:
    """log(1 + sum of (1 - q)^2 e^s) + log(1 + sum of q^2 e^-s), cell by cell in float64."""
    inside, sums = inside.expand_as(scores), []
    for b, c in product(range(scores.shape[0]), range(scores.shape[1])):
        negative = positive = torch.ones((), dtype=torch.float64)
        for i, j in product(range(scores.shape[2]), range(scores.shape[3])):
            if inside[b, c, i, j]:
                s, q = scores[b, c, i, j], mass[b, c, i, j].double()
                negative, positive = negative + (1 - q) ** 2 * s.exp(), positive + q**2 * (-s).exp()
        sums.append(negative.log() + positive.log())
    return torch.stack(sums).view(scores.shape[:2])


def binary_reference(scores: Tensor, inside: Tensor, mass: Tensor) -> Tensor:
    probabilities = scores.sigmoid()
    values = -(mass * probabilities.log() + (1 - mass) * (1 - probabilities).log())
    return values.masked_fill(~inside, 0.0).flatten(2).sum(2)


@pytest.mark.parametrize(
    ("loss", "reference"), [(class_imbalance, imbalance_reference), (binary_cross_entropy, binary_reference)]
)
@pytest.mark.parametrize("scale", [0.5, 8.0])
def test_probabilities_as_targets(loss: object, reference: object, scale: float) -> None:
    scores, inside, mass = cells(scale=scale)
    positives = torch.cat((mass.reshape(-1).nonzero().squeeze(1), torch.tensor([0, 0]) + (mass == 0).int().argmax()))  # padded
    expected_scores, actual_scores = scores.double().requires_grad_(), scores.clone().requires_grad_()
    expected = reference(expected_scores, inside, mass.double())  # type: ignore[operator]
    actual = loss(actual_scores, inside, positives, mass.reshape(-1)[positives])  # type: ignore[operator]
    torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-5)
    (gradient,) = torch.autograd.grad(actual.sum(), actual_scores)
    (expected_gradient,) = torch.autograd.grad(expected.sum(), expected_scores)
    torch.testing.assert_close(gradient.double(), expected_gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", [class_imbalance, binary_cross_entropy])
def test_probabilities_of_1_are_labels(loss: object) -> None:
    scores, inside, mass = cells()
    scores.requires_grad_()
    positives = mass.reshape(-1).nonzero().squeeze(1)
    soft = loss(scores, inside, positives, torch.ones(len(positives)))  # type: ignore[operator]
    hard = loss(scores, inside, positives)  # type: ignore[operator]
    torch.testing.assert_close(soft, hard)
    for one, other in zip(torch.autograd.grad(soft.sum(), scores), torch.autograd.grad(hard.sum(), scores), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("loss", [class_imbalance, binary_cross_entropy])
def test_the_best_scores_of_a_group_have_the_probabilities_of_the_targets(loss: object) -> None:
    """A student learns the probabilities of its teachers."""
    probabilities = torch.tensor([0.02, 0.1, 0.5, 0.9])
    inside, positives = torch.ones(1, 1, 4, dtype=torch.bool), torch.arange(4)
    scores = torch.zeros(1, 1, 4, requires_grad=True)
    for _ in range(2000):
        value = loss(scores, inside, positives, probabilities)  # type: ignore[operator]
        (gradient,) = torch.autograd.grad(value.sum(), scores)
        scores = (scores - gradient).detach().requires_grad_()
    torch.testing.assert_close(scores.detach().sigmoid().flatten(), probabilities, atol=1e-3, rtol=0)


def rows(*values: tuple[int, int, int, float]) -> SoftSpans:
    start, end, label, mass = np.array(values, np.float64).reshape(-1, 4).T
    return SoftSpans(start.astype(np.int64), end.astype(np.int64), label.astype(np.int64), mass.astype(np.float32))


def test_mixed_targets_equal_a_sum_over_all_spans() -> None:
    random = np.random.default_rng(1)
    keys = [(a, b, c) for a in range(4) for b in range(a + 1, 5) for c in range(2)]
    for weight in (0.0, 0.3, 1.0):
        tables = [{keys[i]: float(random.random()) for i in random.choice(len(keys), 7, replace=False)} for _ in range(2)]
        gold, teacher = (rows(*sorted((*key, mass) for key, mass in table.items())) for table in tables)
        expected = {key: weight * tables[0].get(key, 0.0) + (1 - weight) * tables[1].get(key, 0.0) for key in keys}
        for one_type in (False, True):
            mixed = mix_targets(gold, teacher, weight, has_one_type=one_type)
            actual = {(int(s), int(e), int(c)): float(m) for s, e, c, m in zip(*mixed, strict=True)}
            for start, end, label in keys:
                total = sum(expected[start, end, other] for other in range(2))
                scale = max(1.0, total) if one_type else 1.0
                assert actual.get((start, end, label), 0.0) == pytest.approx(expected[start, end, label] / scale, abs=1e-6)
            assert list(actual) == sorted(actual)
