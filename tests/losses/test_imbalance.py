"""The class-imbalance loss and binary cross-entropy, compared with sums in double precision."""

from __future__ import annotations

from itertools import product
from math import exp, log1p
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spanwise.losses.imbalance import binary_cross_entropy, class_imbalance

NONE = torch.empty(0, dtype=torch.long)


class Case(NamedTuple):
    scores: Tensor  # [B, C, 2, 3, 4] cells
    inside: Tensor  # [B, 1, 2, 3, 4]
    labels: Tensor  # of the scores' shape, true only inside

    @property
    def positives(self) -> Tensor:
        return self.labels.reshape(-1).nonzero().squeeze(1)


def make(seed: int = 0, scale: float = 1.0, valid: float = 0.7, gold: float = 0.1) -> Case:
    """Random scores of 4 sentences and 3 types; a share ``valid`` of the cells exists, a share ``gold`` of these is positive."""
    generator = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(4, 3, 2, 3, 4, generator=generator)
    inside = torch.rand(4, 1, 2, 3, 4, generator=generator) < valid
    labels = (torch.rand(scores.shape, generator=generator) < gold) & inside
    return Case(scores, inside, labels)


def reference(scores: Tensor, inside: Tensor, labels: Tensor) -> Tensor:
    """log(1 + sum of e^s over negatives) + log(1 + sum of e^-s over positives), cell by cell in float64; differentiable."""
    rows = []
    inside = inside.expand_as(scores)
    for b in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            negatives, positives = [torch.zeros((), dtype=torch.float64)], [torch.zeros((), dtype=torch.float64)]
            cells = (x[b, c].reshape(-1) for x in (scores.double(), inside, labels))
            for score, is_valid, is_gold in zip(*cells, strict=True):
                if is_valid and is_gold:
                    positives.append(-score)
                elif is_valid:
                    negatives.append(score)
            # logsumexp, because e^1000 overflows even in float64.
            rows.append(sum(torch.stack(x).logsumexp(0) for x in (negatives, positives)))
    return torch.stack(rows).view(scores.shape[:2])


def check(case: Case, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """The loss has the values and gradients of the reference, with a weight per group."""
    weights = torch.linspace(0.5, 2.0, case.scores[:, :, 0, 0, 0].numel()).view(case.scores.shape[:2])
    expected_scores = case.scores.double().requires_grad_()
    expected = reference(expected_scores, case.inside, case.labels)
    total = (expected * weights).sum() + 0 * expected_scores.sum()  # depends on the scores even if no cell exists
    (expected_gradient,) = torch.autograd.grad(total, expected_scores)
    scores = case.scores.clone().requires_grad_()
    values = class_imbalance(scores, case.inside, case.positives)
    assert values.dtype == torch.float32
    torch.testing.assert_close(values.double(), expected.detach(), rtol=rtol, atol=atol)
    (gradient,) = torch.autograd.grad((values * weights).sum(), scores)
    torch.testing.assert_close(gradient.double(), expected_gradient, rtol=1e-4, atol=1e-5)


def test_the_loss_equals_the_reference() -> None:
    for scale, gold in product((0.1, 1.0, 10.0, 100.0), (0.0, 0.02, 0.3, 1.0)):
        check(make(scale=scale, gold=gold))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.01, 30), st.floats(0, 1), st.floats(0, 1))
def test_random_scores_and_masks(seed: int, scale: float, valid: float, gold: float) -> None:
    check(make(seed, scale, valid, gold))


@pytest.mark.parametrize("height", [20.0, 1e3])
@pytest.mark.parametrize("others", [-20.0, -5.0, 3.0])
def test_one_dominant_positive(height: float, others: float) -> None:
    """The published short form returns about 4 for 20 among -20, instead of nearly 0."""
    scores = torch.full((1, 1, 1, 1, 6), others)
    scores[..., 2] = height
    labels = scores == height
    case = Case(scores, torch.ones_like(labels), labels)
    check(case)
    value = class_imbalance(scores, case.inside, torch.tensor([2]))
    assert float(value) == pytest.approx(log1p(5 * exp(others)), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("height", [20.0, 1e3])
def test_one_wrong_positive_or_negative(height: float) -> None:
    """The loss of a positive far below 0, or of a negative far above 0, is its distance from 0."""
    scores = torch.zeros(1, 2, 1, 1, 3)
    scores[0, 0, 0, 0, 0], scores[0, 1, 0, 0, 0] = -height, height
    labels = scores < 0
    case = Case(scores, torch.ones_like(labels), labels)
    check(case)
    assert class_imbalance(scores, case.inside, case.positives)[0].tolist() == pytest.approx(
        [height + log1p(2), height], abs=1e-4
    )


def test_groups_without_positives_negatives_or_cells() -> None:
    scores = torch.tensor([1.0, -2.0, 0.5]).repeat(4, 1, 1).view(4, 1, 1, 1, 3)
    labels = torch.zeros_like(scores, dtype=torch.bool)
    inside = torch.ones_like(labels)
    labels[1] = True  # no negatives
    inside[2] = False  # no cells
    inside[3], labels[3] = labels[3], False
    inside[3, ..., 1] = labels[3, ..., 1] = True  # a single positive
    case = Case(scores, inside, labels)
    check(case)
    values = class_imbalance(scores, inside, case.positives).flatten().tolist()
    assert values == pytest.approx(
        [log1p(exp(1) + exp(-2) + exp(0.5)), log1p(exp(-1) + exp(2) + exp(-0.5)), 0.0, log1p(exp(2))], abs=1e-5
    )


@pytest.mark.parametrize("shape", [(2, 3, 0), (2, 3, 1, 0, 0), (0, 3, 4), (0, 3, 0)])
def test_sentences_without_words_and_batches_without_sentences(shape: tuple[int, ...]) -> None:
    scores = torch.zeros(shape, requires_grad=True)
    inside = torch.ones(shape[0], 1, *shape[2:], dtype=torch.bool)
    for values in (
        class_imbalance(scores, inside & False, NONE),
        binary_cross_entropy(scores, inside & False, NONE),
    ):
        assert torch.equal(values, torch.zeros(shape[:2]))
        values.sum().backward()


FUNCTIONS = {"imbalance": class_imbalance, "binary": binary_cross_entropy}


def run(name: str, case: Case) -> Tensor:
    return FUNCTIONS[name](case.scores, case.inside, case.positives)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_gradients_are_finite_in_every_precision(name: str, dtype: torch.dtype) -> None:
    for mask, scale, gold in product((-torch.inf, None, torch.inf), (1.0, 1e4), (0.0, 0.1, 1.0)):
        check_gradients(name, dtype, mask, scale, gold)


def check_gradients(name: str, dtype: torch.dtype, mask: float | None, scale: float, gold: float) -> None:
    """``mask`` is the score of invalid cells (None: the lowest number of the type); scores go up to the type's range."""
    case = make(scale=scale, gold=gold)
    lowest = torch.finfo(dtype).min
    inside = case.inside.clone()
    inside[0] = False  # a sentence without words
    labels = case.labels & inside
    clamped = case.scores.to(dtype).clamp(lowest, -lowest)
    scores = clamped.masked_fill(~inside, lowest if mask is None else mask).requires_grad_()
    values = run(name, Case(scores, inside, labels))
    values.mean().backward()
    assert values.dtype == torch.float32
    assert bool(values.isfinite().all())
    assert scores.grad is not None
    assert scores.grad.dtype == dtype
    assert bool(scores.grad.isfinite().all())
    assert not scores.grad[~inside.expand_as(scores)].any()
    assert bool(scores.grad[inside.expand_as(scores)].any())
    in_float32 = run(name, Case(clamped.float(), inside, labels))
    assert torch.equal(values, in_float32)  # only the scores are rounded


@pytest.mark.parametrize("name", FUNCTIONS)
def test_negatives_of_minus_infinity_have_no_loss(name: str) -> None:
    for dtype, share in product((torch.float16, torch.bfloat16, torch.float32), (0.5, 1.0)):
        check_infinite_negatives(name, dtype, share)


def check_infinite_negatives(name: str, dtype: torch.dtype, share: float) -> None:
    """A share of the cells is masked by scores instead of ``inside``: the same loss, and no gradient there."""
    case = make(gold=0.0)
    hidden = (torch.rand(case.scores.shape, generator=torch.Generator().manual_seed(5)) < share) & case.inside
    scores = case.scores.to(dtype).masked_fill(hidden, -torch.inf).requires_grad_()
    values = run(name, Case(scores, case.inside, case.labels))
    torch.testing.assert_close(values, run(name, Case(case.scores.to(dtype), case.inside & ~hidden, case.labels)))
    values.sum().backward()
    assert scores.grad is not None
    assert bool(scores.grad.isfinite().all())
    assert not scores.grad[hidden].any()


@pytest.mark.parametrize("gold", [0.0, 0.1, 1.0])
def test_binary_cross_entropy_equals_that_of_torch(gold: float) -> None:
    for scale in (0.1, 1.0, 10.0, 100.0):
        check_binary_cross_entropy(scale, gold)


def check_binary_cross_entropy(scale: float, gold: float) -> None:
    case = make(scale=scale, gold=gold)
    scores, reference_scores = case.scores.clone().requires_grad_(), case.scores.double().requires_grad_()
    values = binary_cross_entropy(scores, case.inside, case.positives)
    expected = F.binary_cross_entropy_with_logits(reference_scores, case.labels.double(), reduction="none")
    expected = (expected * case.inside).flatten(2).sum(2)
    torch.testing.assert_close(values.double(), expected, rtol=1e-5, atol=1e-4)
    weights = torch.linspace(0.5, 2.0, 12).view(4, 3)
    gradients = [torch.autograd.grad((x * weights).sum(), y)[0] for x, y in ((values, scores), (expected, reference_scores))]
    torch.testing.assert_close(gradients[0].double(), gradients[1], rtol=1e-4, atol=1e-5)


def test_arguments_are_not_modified() -> None:
    case = make()
    before = [tensor.clone() for tensor in case]
    for name in FUNCTIONS:
        run(name, case)
    assert all(torch.equal(one, other) for one, other in zip(case, before, strict=True))
