"""The CRF, compared with an enumeration of all tag sequences."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from spanwise.heads.crf import MAX_TRANSITION, Crf

LENGTHS = [5, 1, 0, 3, 4]
TAGS = 3


def make(scale: float, seed: int = 0) -> tuple[Crf, Tensor, Tensor, Tensor]:
    """A CRF, emissions of sentences of different lengths (with random padding), tags and mask."""
    torch.manual_seed(seed)
    crf = Crf(TAGS)
    for parameter in crf.parameters():
        nn.init.normal_(parameter, 0.0, scale)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
    emissions = (scale * torch.randn(len(LENGTHS), max(LENGTHS), TAGS)).masked_fill(~mask.unsqueeze(-1), 1e30)
    return crf, emissions.requires_grad_(), torch.randint(0, TAGS, mask.shape), mask


def enumerated(crf: Crf, emissions: Tensor) -> tuple[Tensor, Tensor]:
    """All sequences of tags [N, n] of one sentence and their scores [N], in float64."""
    paths = torch.tensor(list(product(range(TAGS), repeat=len(emissions))))
    start, end, moves = (p.double().clamp(-MAX_TRANSITION, MAX_TRANSITION) for p in (crf.start, crf.end, crf.transitions))
    scores = start[paths[:, 0]] + end[paths[:, -1]] + moves[paths[:, :-1], paths[:, 1:]].sum(1)
    return paths, scores + emissions.double()[torch.arange(len(emissions)), paths].sum(1)


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 20.0])
def test_partition_best_path_and_marginals_are_exact(scale: float) -> None:
    crf, emissions, _, mask = make(scale)
    partition, best, marginals = crf.partition(emissions, mask), crf.decode(emissions, mask), crf.marginals(emissions, mask)
    for number, length in enumerate(LENGTHS):
        assert not best[number, length:].any()
        assert not marginals[number, length:].any()
        if not length:
            assert partition[number] == 0.0
            continue
        paths, scores = enumerated(crf, emissions[number, :length])
        torch.testing.assert_close(partition[number].double(), scores.logsumexp(0), rtol=1e-6, atol=1e-5)
        assert best[number, :length].tolist() == paths[scores.argmax()].tolist()
        likely = scores.softmax(0)
        expected = torch.stack([(likely.unsqueeze(1) * (paths == tag)).sum(0) for tag in range(TAGS)], 1)
        torch.testing.assert_close(marginals[number, :length].double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_loss_and_gradients_are_exact(scale: float) -> None:
    crf, emissions, tags, mask = make(scale)
    weights = torch.tensor([1.0, 2.0, 3.0, -1.0, 0.5])
    losses = crf.loss(emissions, tags, mask)
    ours = torch.autograd.grad((losses * weights).sum(), [emissions, *crf.parameters()])
    total = torch.zeros((), dtype=torch.float64)
    for number, length in enumerate(LENGTHS):
        if length:
            paths, scores = enumerated(crf, emissions[number, :length])
            gold = scores[(paths == tags[number, :length]).all(1)].squeeze()
            torch.testing.assert_close(losses[number].double(), scores.logsumexp(0) - gold, rtol=1e-5, atol=1e-5)
            total = total + weights[number] * (scores.logsumexp(0) - gold)
    reference = torch.autograd.grad(total, [emissions, *crf.parameters()])
    for one, other in zip(ours, reference, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_gradient_of_the_partition_agrees_with_finite_differences() -> None:
    crf, emissions, _, mask = make(1.0)
    (gradient,) = torch.autograd.grad(crf.partition(emissions, mask).sum(), crf.transitions)
    with torch.no_grad():
        for row, column in product(range(TAGS), repeat=2):
            values = []
            for step in (0.01, -0.02):
                crf.transitions[row, column] += step
                values.append(crf.partition(emissions, mask).double().sum())
            crf.transitions[row, column] += 0.01
            torch.testing.assert_close((values[0] - values[1]) / 0.02, gradient[row, column].double(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("height", [100.0, 1e4])
def test_extreme_emissions_and_transitions_stay_exact(height: float) -> None:
    """Scores that overflow when exponentiated in float32, and transitions at and beyond the clamp."""
    crf, emissions, tags, mask = make(1.0)
    with torch.no_grad():
        emissions.mul_(height)
        crf.transitions.copy_(
            torch.tensor(
                [
                    [MAX_TRANSITION, -MAX_TRANSITION, -3 * MAX_TRANSITION],
                    [-MAX_TRANSITION, MAX_TRANSITION, 0.0],
                    [2 * MAX_TRANSITION, -MAX_TRANSITION, MAX_TRANSITION],
                ]
            )
        )
        crf.start.copy_(torch.tensor([-MAX_TRANSITION, MAX_TRANSITION, 0.0]))
    losses = crf.loss(emissions, tags, mask)
    gradients = torch.autograd.grad(losses.sum(), [emissions, *crf.parameters()])
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)
    best, marginals = crf.decode(emissions, mask), crf.marginals(emissions, mask)
    torch.testing.assert_close(marginals.sum(-1), mask.float())
    for number, length in enumerate(LENGTHS):
        if length:
            paths, scores = enumerated(crf, emissions[number, :length])
            gold = scores[(paths == tags[number, :length]).all(1)].squeeze()
            torch.testing.assert_close(losses[number].double(), scores.logsumexp(0) - gold, rtol=1e-5, atol=1e-3)
            assert best[number, :length].tolist() == paths[scores.argmax()].tolist()


def test_contradictory_messages_do_not_vanish() -> None:
    """Left and right messages prefer different tags as strongly as possible, and the emission excludes one."""
    crf = Crf(2)
    with torch.no_grad():
        crf.transitions.copy_(torch.tensor([[MAX_TRANSITION, -MAX_TRANSITION], [-MAX_TRANSITION, MAX_TRANSITION]]))
        crf.start.copy_(torch.tensor([MAX_TRANSITION, -MAX_TRANSITION]))
        crf.end.copy_(torch.tensor([-MAX_TRANSITION, MAX_TRANSITION]))
    emissions = torch.zeros(1, 60, 2)
    emissions[0, ::2, 0] = -500.0
    mask = torch.ones(1, 60, dtype=torch.bool)
    marginals = crf.marginals(emissions, mask)
    assert bool(marginals.isfinite().all())
    torch.testing.assert_close(marginals.sum(-1), torch.ones(1, 60))
    assert bool(crf.partition(emissions, mask).isfinite().all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_emissions_are_computed_in_float32(dtype: torch.dtype) -> None:
    crf, emissions, tags, mask = make(2.0)
    half = emissions.detach().masked_fill(~mask.unsqueeze(-1), 100.0).to(dtype).requires_grad_()
    losses = crf.loss(half, tags, mask)
    assert losses.dtype == torch.float32
    torch.testing.assert_close(losses, crf.loss(half.detach().float(), tags, mask))
    losses.sum().backward()
    assert half.grad is not None
    assert half.grad.dtype == dtype
    assert bool(half.grad.isfinite().all())
    assert torch.equal(crf.decode(half, mask), crf.decode(half.float(), mask))


def test_results_do_not_depend_on_the_batch() -> None:
    crf, emissions, tags, mask = make(1.0)
    losses, best, marginals = crf.loss(emissions, tags, mask), crf.decode(emissions, mask), crf.marginals(emissions, mask)
    for number, length in enumerate(LENGTHS):
        if length:
            alone = (emissions[number : number + 1, :length], mask[number : number + 1, :length])
            torch.testing.assert_close(crf.loss(alone[0], tags[number : number + 1, :length], alone[1])[0], losses[number])
            assert torch.equal(crf.decode(*alone)[0], best[number, :length])
            torch.testing.assert_close(crf.marginals(*alone)[0], marginals[number, :length])
