"""Linear layers for prediction on a CPU by oneDNN, together with the activation or the sum after them.

PyTorch multiplies float32 matrices with MKL. On AMD processors oneDNN, which PyTorch contains too, is
about a tenth faster, and applies GELU or adds the residual while the product is still in the cache. It
compiles a kernel for each shape, which only large products repay. In training, where each step compiles
twice as many, nothing was gained.
"""

from __future__ import annotations

import platform
from functools import cache

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from spanwise.runtime.device import is_traced
from spanwise.runtime.faster_layers import exchange_class

MIN_ROWS = 256  # of a product that repays the compilation of its kernel


class CpuLinear(nn.Linear):
    """A linear layer that predicts faster on a CPU. Weights are those of ``nn.Linear``, results differ in their last digits."""

    def forward(self, input: Tensor) -> Tensor:
        return _product(input, self.weight, self.bias) if _can_use(input, self) else super().forward(input)


def use_cpu_linear(model: nn.Module) -> None:
    """Turn all linear layers into ``CpuLinear``, in place, where oneDNN works.

    >>> model = nn.Sequential(nn.Linear(3, 2))
    >>> use_cpu_linear(model)
    >>> isinstance(model[0], nn.Linear), list(model.state_dict())
    (True, ['0.weight', '0.bias'])
    """
    for module in model.modules():
        if type(module) is nn.Linear and has_onednn():
            exchange_class(module, CpuLinear)


def linear_gelu(inputs: Tensor, layer: nn.Linear) -> Tensor:
    """``F.gelu(layer(inputs))``, in one pass where possible. The layer computes a product and a bias only."""
    if not _can_use(inputs, layer):
        return F.gelu(layer(inputs))
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, layer.weight, layer.bias, "gelu", [], "none")
    return outputs


def linear_add(inputs: Tensor, layer: nn.Linear, other: Tensor) -> Tensor:
    """``layer(inputs) + other``, in one pass where possible. The layer computes a product and a bias only."""
    if not _can_use(inputs, layer):
        total: Tensor = layer(inputs) + other
        return total
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise.binary(inputs, other, layer.weight, layer.bias, "add")
    return outputs


@cache
def has_onednn() -> bool:
    """Whether the operations of oneDNN exist here and compute what PyTorch does. They are not part of its stable interface."""
    is_available: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if platform.machine().lower() not in ("x86_64", "amd64") or not is_available:
        return False
    random = torch.Generator().manual_seed(1)
    inputs, weight, bias, other = (torch.randn(size, generator=random) for size in ((7, 5), (3, 5), (3,), (7, 3)))
    expected = F.linear(inputs, weight, bias)
    try:
        pairs = (
            (_product(inputs, weight, bias), expected),
            (torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "gelu", [], "none"), F.gelu(expected)),
            (torch.ops.mkldnn._linear_pointwise.binary(inputs, other, weight, bias, "add"), expected + other),
        )
        return all(torch.allclose(actual, wanted, atol=1e-5) for actual, wanted in pairs)
    except Exception:  # of many kinds: another version of PyTorch, an unsupported processor
        return False


def _can_use(inputs: Tensor, layer: nn.Linear) -> bool:
    return (
        not torch.is_grad_enabled()
        and not is_traced()
        and inputs.device.type == "cpu"
        and inputs.dtype == layer.weight.dtype == torch.float32
        and inputs.numel() >= MIN_ROWS * layer.in_features
        and not torch.is_autocast_enabled("cpu")
        and has_onednn()
    )


def _product(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    outputs: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")
    return outputs
