"""Fast linear layers, compared with those of PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from spanwise.runtime.fast_linear import FastLinear, fast_linear, use_fast_linear


@pytest.mark.parametrize("shape", [(64, 8), (32, 8), (5, 8), (128, 13), (3, 4, 8), (2, 3, 4, 7), (0, 8), (2, 0, 8)])
@pytest.mark.parametrize("outputs", [16, 6])
def test_results_and_gradients_are_those_of_a_linear_layer(shape: tuple[int, ...], outputs: int) -> None:
    torch.manual_seed(1)
    layer = nn.Linear(shape[-1], outputs).double()
    inputs = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    gradient = torch.randn(*shape[:-1], outputs, dtype=torch.float64)
    results = []
    for function in (layer, lambda inputs: fast_linear(inputs, layer.weight, layer.bias)):
        tensors = (inputs, layer.weight, layer.bias)
        values = function(inputs)
        results.append((values, *torch.autograd.grad(values, tensors, gradient)))
    for actual, expected in zip(results[1], results[0], strict=True):
        assert actual.shape == expected.shape
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)  # biases are summed in float32


def test_frozen_weights_get_no_gradient() -> None:
    layer = nn.Linear(8, 8).requires_grad_(False)
    inputs = torch.randn(4, 8, requires_grad=True)
    fast_linear(inputs, layer.weight, layer.bias).sum().backward()
    assert inputs.grad is not None
    assert layer.weight.grad is None


def test_product_without_a_bias() -> None:
    weight, inputs = torch.randn(6, 5), torch.randn(4, 5)
    torch.testing.assert_close(fast_linear(inputs, weight, None), inputs @ weight.t())


def test_layers_are_replaced_in_place() -> None:
    bare = nn.Linear(2, 2, bias=False)
    model = nn.Sequential(nn.Linear(2, 3), bare, nn.Sequential(nn.Linear(3, 1)))
    first, names = model[0], list(model.state_dict())
    use_fast_linear(model)
    assert model[0] is first
    assert [type(module) for module in (model[0], model[1], model[2][0])] == [FastLinear, nn.Linear, FastLinear]
    assert list(model.state_dict()) == names
    inputs = torch.randn(5, 2)
    assert torch.equal(first(inputs), torch.nn.functional.linear(inputs, first.weight, first.bias))
