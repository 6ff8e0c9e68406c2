"""Linear layers for recorded training steps on a GPU, with fewer and faster kernels.

The gradient of a bias is a sum over all rows, which PyTorch computes as slowly as the product that it
belongs to (``column_sums``). Sizes that are no multiple of eight exclude the fast products of a GPU,
so they are padded with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from spanwise.runtime.column_sums import sum_rows
from spanwise.runtime.faster_layers import exchange_class

MULTIPLE = 8  # of the sizes that fast products need, for all number formats


class FastLinear(nn.Linear):
    """A linear layer that is fast in training on a GPU. Weights and results are those of ``nn.Linear``."""

    def forward(self, input: Tensor) -> Tensor:
        if not input.is_cuda or not torch.is_grad_enabled():
            return super().forward(input)
        dtype = product_type(self.weight)
        return fast_linear(input.to(dtype), self.weight.to(dtype), self.bias.to(dtype))


def use_fast_linear(model: nn.Module) -> None:
    """Turn all linear layers with a bias into ``FastLinear``, in place."""
    for module in model.modules():
        if type(module) is nn.Linear and module.bias is not None:
            exchange_class(module, FastLinear)


def is_plain_linear(layer: nn.Module) -> bool:
    """Whether a layer computes a product and a bias only; other classes, such as those of adapters, may compute more."""
    return type(layer) in (nn.Linear, FastLinear) and layer.bias is not None


def product_type(weight: Tensor) -> torch.dtype:
    """The type in which a linear layer with this weight computes here."""
    kind = weight.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype


def joint_linear(inputs: Tensor, layers: Sequence[Any]) -> Tensor:
    """The results of plain linear layers for the same inputs, next to each other, as one product.

    >>> first, second = nn.Linear(2, 3), nn.Linear(2, 1)
    >>> inputs = torch.ones(5, 2)
    >>> torch.allclose(joint_linear(inputs, (first, second)), torch.cat((first(inputs), second(inputs)), -1))
    True
    """
    weight, bias = torch.cat([layer.weight for layer in layers]), torch.cat([layer.bias for layer in layers])
    dtype = product_type(weight)
    return fast_linear(inputs.to(dtype), weight.to(dtype), bias.to(dtype))


def fast_linear(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``F.linear`` with the same gradients."""
    size = len(weight)
    extra_inputs, extra_outputs = -weight.shape[1] % MULTIPLE, -size % MULTIPLE
    if extra_inputs:
        inputs = F.pad(inputs, (0, extra_inputs))
    if extra_inputs or extra_outputs:
        weight = F.pad(weight, (0, extra_inputs, 0, extra_outputs))
        bias = None if bias is None else F.pad(bias, (0, extra_outputs))
    outputs: Tensor = _Linear.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return outputs[..., :size].contiguous() if extra_outputs else outputs


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return F.linear(inputs, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        inputs, weight = ctx.saved_tensors
        gradient = gradient.contiguous()
        needs_inputs, needs_weight, needs_bias = ctx.needs_input_grad
        rows = gradient.view(-1, len(weight))
        return (
            (rows @ weight).view_as(inputs) if needs_inputs else None,
            rows.t() @ inputs.reshape(-1, weight.shape[1]) if needs_weight else None,
            sum_rows(gradient) if needs_bias else None,
        )
