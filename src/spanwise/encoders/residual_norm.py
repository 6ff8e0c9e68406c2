"""Dropout, residual sum and layer norm, the end of each half of a transformer layer; one kernel in training on a GPU."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from spanwise.runtime.experimental import uses_experimental_kernels
from spanwise.runtime.faster_layers import FasterLayer, can_train, exchange_class

WIDEST = 1024  # values per row; a program reads a whole row


def residual_norm(residual: Tensor, branch: Tensor, norm: Any, dropout: float, *, training: bool) -> Tensor:
    """``norm(residual + dropout(branch))``, in the type of the residual if a kernel computes it.

    >>> norm = nn.LayerNorm(2)
    >>> residual_norm(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 1.0]]), norm, 0.5, training=False).round().tolist()
    [[1.0, -1.0]]
    """
    if training and can_use_kernels(residual):
        return norm_with_kernels(residual, branch, norm, dropout)
    result: Tensor = norm(residual + F.dropout(branch, dropout, training))
    return result


def norm_with_kernels(residual: Tensor, branch: Tensor, norm: Any, dropout: float) -> Tensor:
    """``residual_norm`` in training, computed by kernels."""
    from spanwise.encoders.norm_kernels import ResidualNorm

    result: Tensor = ResidualNorm.apply(residual, branch, norm.weight, norm.bias, norm.eps, dropout)  # type: ignore[no-untyped-call]
    return result


def use_fast_norms(model: nn.Module) -> None:
    """Give the outputs of the halves of BERT's layers the faster forward pass, in place."""
    kinds = {"dense": nn.Linear, "dropout": nn.Dropout, "LayerNorm": nn.LayerNorm}
    for module in model.modules():
        has_parts = all(isinstance(getattr(module, name, None), kind) for name, kind in kinds.items())
        if has_parts and type(module).__name__.endswith("Output"):
            exchange_class(module, FastOutput)


class FastOutput(FasterLayer):
    """The forward pass of a linear layer with dropout, residual sum and norm."""

    def forward(self, hidden_states: Tensor, input_tensor: Tensor) -> Any:
        if not self.training or not can_use_kernels(input_tensor):
            return super().forward(hidden_states, input_tensor)
        dense, dropout, norm = (getattr(self, name) for name in ("dense", "dropout", "LayerNorm"))
        return norm_with_kernels(input_tensor, dense(hidden_states), norm, dropout.p)


def can_use_kernels(residual: Tensor) -> bool:
    """Whether kernels can compute the norm of ``residual`` [..., d]: short rows in training on a GPU, with Triton."""
    width = residual.shape[-1]
    is_training = residual.is_cuda and torch.is_grad_enabled() and uses_experimental_kernels()
    return is_training and width <= WIDEST and _works(residual.device, width)


@cache
def _works(device: torch.device, width: int) -> bool:
    """Whether kernels can compute norms of this width."""

    def step() -> Tensor:
        rows = torch.zeros(2, width, device=device, requires_grad=True)
        return norm_with_kernels(rows, rows, nn.LayerNorm(width, device=device), 0.1)

    return can_train(step, device)
