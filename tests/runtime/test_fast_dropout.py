"""Dropout with masks from random bytes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from spanwise.runtime.fast_dropout import FastDropout, fast_dropout, use_fast_dropout


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_rate_and_scale(rate: float) -> None:
    torch.manual_seed(1)
    inputs = torch.ones(256, 1001, requires_grad=True)  # no multiple of eight in a row
    outputs = fast_dropout(inputs, rate)
    nearest = round(256 * rate) / 256
    assert float((outputs == 0).float().mean()) == pytest.approx(nearest, abs=0.005)
    assert outputs.unique().tolist() == pytest.approx([0, 1 / (1 - nearest)])
    columns = (outputs.detach().view(-1)[: 1001 * 256 // 8 * 8].view(-1, 8) == 0).float().mean(0)
    assert columns.tolist() == pytest.approx([nearest] * 8, abs=0.01)  # the bytes of a number are alike
    outputs.sum().backward()
    assert torch.equal(inputs.grad, outputs.detach())  # for ones, the gradient of the sum is the output


def test_seed_decides() -> None:
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(fast_dropout(torch.ones(2000), 0.5))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_layers_are_replaced_and_do_nothing_in_evaluation() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.0)))
    use_fast_dropout(model)
    assert [type(module) for module in model.modules()].count(FastDropout) == 2
    inputs = torch.ones(4000)
    assert torch.equal(model[1].eval()(inputs), inputs)
    assert torch.equal(model[2].train()(inputs), inputs)
    assert not torch.equal(model[1].train()(inputs), inputs)


@pytest.mark.parametrize("rate", [0.0001, 0.9999])
def test_extreme_rates_are_finite(rate: float) -> None:
    assert fast_dropout(torch.ones(4000), rate).isfinite().all()
