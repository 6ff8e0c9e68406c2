"""Dropout for training on a CPU, with masks from random bytes.

PyTorch draws one random number per value, in one thread, which takes 5 % of the training step of a
small transformer. Here one number gives the masks of eight values. So the rate is a multiple of 1/256.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from spanwise.runtime.faster_layers import exchange_class

LEVELS = 256  # values of a byte
MIN_SIZE = 1024  # values; drawing fewer takes no time


class FastDropout(nn.Dropout):
    """A dropout layer that is fast in training on a CPU."""

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or input.device.type != "cpu" or input.numel() < MIN_SIZE or not 0 < self.p < 1:
            return super().forward(input)
        return fast_dropout(input, self.p)


def use_fast_dropout(model: nn.Module) -> None:
    """Turn all dropout layers into ``FastDropout``, in place."""
    for module in model.modules():
        if type(module) is nn.Dropout:
            exchange_class(module, FastDropout)


def fast_dropout(inputs: Tensor, rate: float) -> Tensor:
    """Set values to 0 with the nearest rate above 0 and below 1 that is a multiple of 1/256, and scale the others.

    >>> fast_dropout(torch.ones(5), 0.5).unique().tolist() in ([0.0, 2.0], [0.0], [2.0])
    True
    """
    level = min(max(round(rate * LEVELS), 1), LEVELS - 1)
    bits = torch.empty(-(-inputs.numel() // 8), dtype=torch.int64).random_(-(2**63), None)  # all values of 64 bits
    is_kept = bits.view(torch.uint8)[: inputs.numel()].view(inputs.shape) >= level
    outputs: Tensor = _Dropout.apply(inputs, is_kept, LEVELS / (LEVELS - level))  # type: ignore[no-untyped-call]
    return outputs


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, is_kept: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(is_kept)
        ctx.scale = scale
        return torch.where(is_kept, inputs, 0.0).mul_(scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (is_kept,) = ctx.saved_tensors
        return torch.where(is_kept, gradient, 0.0).mul_(ctx.scale), None, None
