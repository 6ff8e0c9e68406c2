"""Learning rates, weight decay and the schedule."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import model
from torch import nn

from spanwise.config.settings import TrainingSettings
from spanwise.training import checkpoint
from spanwise.training.optimization import encoder_rate, make_optimizer, make_schedule


def test_pretrained_and_new_weights_have_different_rates(tiny_bert: Path) -> None:
    built = model(tiny_bert, "spanner")
    optimizer = make_optimizer(built, TrainingSettings(encoder_rate=2e-5, head_rate=3e-3, weight_decay=0.1))
    groups = {id(p): (group["lr"], group["weight_decay"]) for group in optimizer.param_groups for p in group["params"]}
    assert len(groups) == len(list(built.parameters()))
    for name, parameter in built.named_parameters():
        rate = 2e-5 if name.startswith("encoder.") else 3e-3
        decay = 0.0 if name.endswith("bias") or "LayerNorm" in name else 0.1
        assert groups[id(parameter)] == (rate, decay), name


def test_an_encoder_without_pretraining_has_the_rate_of_the_head() -> None:
    optimizer = make_optimizer(model("static"), TrainingSettings(encoder_rate=2e-5, head_rate=3e-3))
    assert {group["lr"] for group in optimizer.param_groups} == {3e-3}


def test_frozen_weights_are_not_optimised(tiny_bert: Path) -> None:
    built = model(tiny_bert, "spanner", ["encoder.frozen_layers=3"])
    optimizer = make_optimizer(built, TrainingSettings())
    assert {group["lr"] for group in optimizer.param_groups} == {1e-3}
    assert sum(len(group["params"]) for group in optimizer.param_groups) == len(list(built.head.parameters()))


def test_small_encoders_have_a_higher_rate() -> None:
    assert encoder_rate(TrainingSettings(), 22_000_000) == 1e-4
    assert encoder_rate(TrainingSettings(), 110_000_000) == 3e-5
    assert encoder_rate(TrainingSettings(encoder_rate=7e-6), 10) == 7e-6
    assert encoder_rate(TrainingSettings(encoder_rate=0), 10) == 0


def factors(steps: int, warmup: float) -> list[float]:
    """The rate of each step, relative to the full rate."""
    optimizer = torch.optim.AdamW([nn.Parameter(torch.zeros(1))], lr=0.5)
    schedule = make_schedule(optimizer, steps, warmup)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"] / 0.5)
        optimizer.step()
        schedule.step()
    return [*rates, optimizer.param_groups[0]["lr"] / 0.5]


def test_the_rate_rises_and_falls_linearly() -> None:
    assert factors(10, 0.2) == pytest.approx([1 / 3, 2 / 3, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0])
    assert factors(4, 0) == pytest.approx([1, 0.75, 0.5, 0.25, 0])
    assert factors(4, 1) == pytest.approx([0.2, 0.4, 0.6, 0.8, 0])
    assert factors(1, 0.1) == pytest.approx([1, 0])


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.5, 1.0])
def test_every_step_has_a_positive_rate(steps: int, warmup: float) -> None:
    rates = factors(steps, warmup)
    assert all(0 < rate <= 1 for rate in rates[:-1])
    assert rates[-1] == 0


def test_copied_encoder_layers_have_the_rate_of_pretrained_weights(tiny_bert: Path) -> None:
    for recipe in ("deep-span", "deep-span-pruned"):
        built = model(tiny_bert, recipe)
        optimizer = make_optimizer(built, TrainingSettings(encoder_rate=2e-5, head_rate=3e-3))
        rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
        copied = [name for name, _ in built.named_parameters() if ".copies." in name]
        assert len(copied) == 3 * 16
        for name, parameter in built.named_parameters():
            assert rates[id(parameter)] == (2e-5 if name.startswith("encoder.") or name in copied else 3e-3), name


def test_a_resumed_state_has_the_memory_layout_of_its_weights() -> None:
    """On a GPU, weights of convolutions are stored by channel; a fused step reads all memory in the same order."""
    torch.manual_seed(0)
    whole, resumed = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)
    for layer in (whole, resumed):
        layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)
    optimizer, resumed_optimizer = (torch.optim.AdamW(layer.parameters(), fused=True) for layer in (whole, resumed))
    _step(whole, optimizer)
    resumed.load_state_dict(whole.state_dict())
    state = {name: value.clone() for name, value in checkpoint._optimizer_tensors(optimizer).items()}
    checkpoint._fill_optimizer(resumed_optimizer, state)
    _step(whole, optimizer)
    _step(resumed, resumed_optimizer)
    assert torch.equal(resumed.weight, whole.weight)


def _step(layer: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    layer(torch.arange(150.0).view(2, 3, 5, 5).sin()).square().sum().backward()
    optimizer.step()
