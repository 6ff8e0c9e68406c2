"""A linear layer, dropout, residual sum and layer norm, the end of each half of a transformer layer.

In training on a GPU, all but the product is one kernel.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from spanwise.runtime.fast_linear import fast_linear, is_plain_linear, product_type
from spanwise.runtime.faster_layers import FasterLayer, exchange_class
from spanwise.runtime.kernel_choice import MAX_VALUES, example_values, kernels_agree, uses_kernels

WIDEST = 1024  # values per row; a program reads whole rows


def residual_norm(residual: Tensor, inputs: Tensor, linear: Any, norm: Any, dropout: float, *, training: bool) -> Tensor:
    """``norm(residual + dropout(linear(inputs)))``, in the type of the residual if a kernel computes it.

    >>> linear, norm = nn.Linear(2, 2), nn.LayerNorm(2)
    >>> _ = linear.weight.data.copy_(torch.eye(2)), linear.bias.data.zero_()
    >>> rows = torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 1.0]])
    >>> residual_norm(*rows, linear, norm, 0.5, training=False).round().tolist()
    [[1.0, -1.0]]
    """
    if training and can_use_kernels(residual, linear):
        return norm_with_kernels(residual, multiply(inputs, linear), linear.bias, norm, dropout)
    result: Tensor = norm(residual + F.dropout(linear(inputs), dropout, training))
    return result


def multiply(inputs: Tensor, linear: nn.Linear) -> Tensor:
    """The result of a linear layer without its bias, in the type of the current autocast."""
    dtype = product_type(linear.weight)
    return fast_linear(inputs.to(dtype), linear.weight.to(dtype), None)


def norm_with_kernels(residual: Tensor, branch: Tensor, bias: Tensor, norm: Any, dropout: float) -> Tensor:
    """``norm(residual + dropout(branch + bias))`` in training, computed by kernels."""
    from spanwise.encoders.norm_kernels import ResidualNorm

    result: Tensor = ResidualNorm.apply(residual, branch, bias, norm.weight, norm.bias, norm.eps, dropout)  # type: ignore[no-untyped-call]
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
        dense, dropout, norm = (getattr(self, name) for name in ("dense", "dropout", "LayerNorm"))
        if not self.training or not can_use_kernels(input_tensor, dense):
            return super().forward(hidden_states, input_tensor)
        return norm_with_kernels(input_tensor, multiply(hidden_states, dense), dense.bias, norm, dropout.p)


def can_use_kernels(residual: Tensor, linear: Any) -> bool:
    """Whether kernels can compute the norm of ``residual`` [..., d] plus a linear layer: short rows in training on a GPU."""
    if not residual.is_cuda or not torch.is_grad_enabled() or not uses_kernels():
        return False
    width = residual.shape[-1]
    if not is_plain_linear(linear) or width > WIDEST or residual.numel() >= MAX_VALUES:
        return False
    return _works(residual.device, width, residual.dtype, product_type(linear.weight), linear.bias.dtype)


@cache
def _works(device: torch.device, width: int, dtype: torch.dtype, branch_type: torch.dtype, weight_type: torch.dtype) -> bool:
    """Whether kernels compute norms of this width and these types."""
    rows = [example_values(7, width, device=device, dtype=kind, seed=seed) for seed, kind in enumerate((dtype, branch_type))]
    vectors = [example_values(width, device=device, dtype=weight_type, seed=seed) for seed in (2, 3, 4)]

    def kernels(residual: Tensor, branch: Tensor, branch_bias: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        from spanwise.encoders.norm_kernels import ResidualNorm

        result: Tensor = ResidualNorm.apply(residual, branch, branch_bias, weight, bias, 1e-12, 0.0)  # type: ignore[no-untyped-call]
        return result

    def reference(residual: Tensor, branch: Tensor, branch_bias: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(residual + branch + branch_bias, (width,), weight, bias, 1e-12)

    return kernels_agree("norm", kernels, reference, [*rows, *vectors])
