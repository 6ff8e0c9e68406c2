"""Linear layers for recorded training steps on a GPU, with fewer and faster kernels.

The gradient of a bias is a sum over all rows. PyTorch computes it with blocks that wait for each
other, which takes as long as the product that it belongs to; two sums, of groups of rows and of
groups, take a third of that. Sizes that are no multiple of eight exclude the fast products of a GPU,
so they are padded with zeros.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from spanwise.runtime.faster_layers import exchange_class

MULTIPLE = 8  # of the sizes that fast products need, for all number formats
GROUPS = (64, 32)  # rows that are summed first


class FastLinear(nn.Linear):
    """A linear layer that is fast in training on a GPU. Weights and results are those of ``nn.Linear``."""

    def forward(self, input: Tensor) -> Tensor:
        if not input.is_cuda or not torch.is_grad_enabled():
            return super().forward(input)
        dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else self.weight.dtype
        return fast_linear(input.to(dtype), self.weight.to(dtype), self.bias.to(dtype))


def use_fast_linear(model: nn.Module) -> None:
    """Turn all linear layers with a bias into ``FastLinear``, in place."""
    for module in model.modules():
        if type(module) is nn.Linear and module.bias is not None:
            exchange_class(module, FastLinear)


def fast_linear(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``F.linear`` with the same gradients."""
    size = len(bias)
    extra_inputs, extra_outputs = -weight.shape[1] % MULTIPLE, -size % MULTIPLE
    if extra_inputs:
        inputs = F.pad(inputs, (0, extra_inputs))
    if extra_inputs or extra_outputs:
        weight, bias = F.pad(weight, (0, extra_inputs, 0, extra_outputs)), F.pad(bias, (0, extra_outputs))
    outputs: Tensor = _Linear.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return outputs[..., :size].contiguous() if extra_outputs else outputs


def sum_rows(matrix: Tensor) -> Tensor:
    """The sum over all dimensions but the last, in float32.

    >>> sum_rows(torch.ones(2, 64, 3))
    tensor([128., 128., 128.])
    """
    if matrix.ndim == 2:
        group = next((group for group in GROUPS if len(matrix) % group == 0), 1)
        matrix = matrix.view(-1, group, matrix.shape[1])
    return matrix.flatten(0, -3).sum(1, dtype=torch.float32).sum(0)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
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
            sum_rows(gradient).to(gradient.dtype) if needs_bias else None,
        )
