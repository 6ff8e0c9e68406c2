"""Linear layers by oneDNN, compared with those of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from spanwise.runtime import cpu_linear
from spanwise.runtime.cpu_linear import MIN_ROWS, CpuLinear, has_onednn, linear_add, linear_gelu, use_cpu_linear

ROWS = MIN_ROWS + 3
needs_onednn = pytest.mark.skipif(not has_onednn(), reason="oneDNN does not work on this processor")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, ...]]]:
    """The shapes of the inputs that plain products of oneDNN get."""
    shapes: list[tuple[int, ...]] = []
    product = cpu_linear._product

    def counted(inputs: Tensor, *others: Any) -> Tensor:
        shapes.append(tuple(inputs.shape))
        return product(inputs, *others)

    monkeypatch.setattr(cpu_linear, "_product", counted)
    return shapes


def fast(layer: nn.Linear) -> nn.Linear:
    use_cpu_linear(model := nn.Sequential(layer))
    return model[0]  # type: ignore[return-value]


@needs_onednn
@pytest.mark.parametrize("shape", [(ROWS, 8), (2, ROWS, 5), (3, 2, ROWS, 7)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_results_are_those_of_a_linear_layer(shape: tuple[int, ...], has_bias: bool, calls: list[tuple[int, ...]]) -> None:
    torch.manual_seed(1)
    layer = fast(nn.Linear(shape[-1], 6, bias=has_bias))
    inputs = torch.randn(shape)
    with torch.no_grad():
        torch.testing.assert_close(layer(inputs), F.linear(inputs, layer.weight, layer.bias))
    assert calls == [shape]


@needs_onednn
def test_strided_inputs(calls: list[tuple[int, ...]]) -> None:
    layer, inputs = fast(nn.Linear(4, 6)), torch.randn(8, ROWS)[::2].t()
    with torch.no_grad():
        torch.testing.assert_close(layer(inputs), F.linear(inputs, layer.weight, layer.bias))
    assert calls == [(ROWS, 4)]


def test_training_uses_the_layer_of_pytorch(calls: list[tuple[int, ...]]) -> None:
    layer, inputs = fast(nn.Linear(4, 6)), torch.randn(ROWS, 4)
    layer(inputs).sum().backward()
    assert layer.weight.grad is not None
    assert not calls


@needs_onednn
def test_activation_and_sum_in_one_pass() -> None:
    layer, inputs, other = nn.Linear(9, 5), torch.randn(2, ROWS, 9), torch.randn(2, ROWS, 5)
    with torch.inference_mode():
        torch.testing.assert_close(linear_gelu(inputs, layer), F.gelu(layer(inputs)))
        torch.testing.assert_close(linear_add(inputs, layer, other), layer(inputs) + other)


def test_activation_and_sum_with_gradients() -> None:
    layer, inputs, other = nn.Linear(9, 5), torch.randn(ROWS, 9), torch.randn(ROWS, 5)
    assert torch.equal(linear_gelu(inputs, layer), F.gelu(layer(inputs)))
    assert torch.equal(linear_add(inputs, layer, other), layer(inputs) + other)
    assert linear_gelu(inputs, layer).requires_grad


@pytest.mark.parametrize("inputs", [torch.randn(MIN_ROWS - 1, 4), torch.randn(0, 4), torch.randn(ROWS, 4).double()])
def test_other_inputs_use_the_layer_of_pytorch(inputs: Tensor, calls: list[tuple[int, ...]]) -> None:
    layer = fast(nn.Linear(4, 3)).to(inputs.dtype)
    with torch.no_grad():
        assert torch.equal(layer(inputs), F.linear(inputs, layer.weight, layer.bias))
    assert not calls


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:DeprecationWarning")
def test_graphs_for_export_have_plain_products(calls: list[tuple[int, ...]]) -> None:
    inputs = torch.randn(ROWS, 4)
    with torch.no_grad():
        traced = torch.jit.trace(fast(nn.Linear(4, 3)), inputs, check_trace=False)  # type: ignore[no-untyped-call]
    assert not calls
    assert "mkldnn" not in str(traced.graph)


@needs_onednn
def test_layers_are_replaced_in_place() -> None:
    class Adapted(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(2, 3), Adapted(3, 2), nn.Sequential(nn.Linear(2, 1, bias=False)))
    first, names = model[0], list(model.state_dict())
    use_cpu_linear(model)
    assert model[0] is first
    assert [type(layer) for layer in (model[0], model[1], model[2][0])] == [CpuLinear, Adapted, CpuLinear]
    assert list(model.state_dict()) == names


def test_without_onednn_layers_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_linear, "has_onednn", lambda: False)
    layer = fast(nn.Linear(4, 3))
    assert type(layer) is nn.Linear
    inputs, other = torch.randn(ROWS, 4), torch.randn(ROWS, 3)
    with torch.no_grad():
        assert torch.equal(linear_gelu(inputs, layer), F.gelu(layer(inputs)))
        assert torch.equal(linear_add(inputs, layer, other), layer(inputs) + other)


@pytest.mark.parametrize("problem", ["other results", "no such operation"])
def test_operations_that_changed_are_not_used(monkeypatch: pytest.MonkeyPatch, problem: str) -> None:
    def changed(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        if problem == "other results":
            return F.linear(inputs, weight)
        raise AttributeError(problem)

    monkeypatch.setattr(cpu_linear, "_product", changed)
    assert not has_onednn.__wrapped__()
