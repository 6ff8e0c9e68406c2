"""The exchange of a layer's class."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spanwise.runtime.faster_layers import FasterLayer, exchange_class


class Negated(FasterLayer):
    """A forward pass for any layer."""

    def forward(self, inputs: Tensor) -> Any:
        return -super().forward(inputs)


class NegatedLinear(nn.Linear):
    """A forward pass for linear layers."""

    def forward(self, input: Tensor) -> Tensor:
        return -super().forward(input)


@pytest.mark.parametrize("faster", [Negated, NegatedLinear])
def test_layer_gets_another_forward_pass_once(faster: type[nn.Module]) -> None:
    layer, inputs = nn.Linear(3, 2), torch.randn(4, 3)
    expected, weight, names = -layer(inputs), layer.weight, list(layer.state_dict())
    for _ in range(2):
        exchange_class(layer, faster)
        assert torch.equal(layer(inputs), expected)
    assert layer.weight is weight
    assert list(layer.state_dict()) == names
    assert isinstance(layer, nn.Linear)
    assert type(layer).__mro__.count(faster) == 1


@pytest.mark.parametrize("faster", [Negated, NegatedLinear])
@pytest.mark.parametrize("copy", [deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_have_the_same_class(faster: type[nn.Module], copy: Callable[[nn.Module], nn.Module]) -> None:
    layer, inputs = nn.Linear(3, 2), torch.randn(4, 3)
    exchange_class(layer, faster)
    other = copy(layer)
    assert type(other) is type(layer)
    assert torch.equal(other(inputs), layer(inputs))
    assert other.weight is not layer.weight


def test_layers_of_one_class_share_the_new_class() -> None:
    first, second, other = nn.ReLU(), nn.ReLU(), nn.Tanh()
    for layer in (first, second, other):
        exchange_class(layer, Negated)
    assert type(first) is type(second)
    assert type(first) is not type(other)
