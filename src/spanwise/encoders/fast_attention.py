"""Faster attention of BERT and its relatives in recorded training steps on a GPU.

Queries, keys and values are one product instead of three, and attention is one small kernel instead
of PyTorch's, which is made for long texts. Weights and their names stay the same.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from spanwise.runtime.experimental import uses_experimental_kernels
from spanwise.runtime.fast_linear import fast_linear
from spanwise.runtime.faster_layers import FasterLayer, can_train, exchange_class

HEAD_SIZES = (16, 32, 64, 128, 256)  # values per head; Triton needs a power of two
LARGEST_TILE = 128 * 32  # padded length times values per head; larger tiles do not fit into the memory of a block
PROJECTIONS = ("query", "key", "value")


def use_fast_attention(model: nn.Module) -> None:
    """Give the self-attention layers of a transformer the faster forward pass, in place."""
    for module in model.modules():
        has_parts = all(isinstance(getattr(module, name, None), nn.Linear) for name in PROJECTIONS)
        is_known = type(module).__name__.endswith("SelfAttention") and isinstance(getattr(module, "dropout", None), nn.Dropout)
        if has_parts and is_known and hasattr(module, "num_attention_heads"):
            exchange_class(module, FastAttention)


class FastAttention(FasterLayer):
    """The forward pass of a layer of self-attention."""

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None, *arguments: Any, **options: Any) -> Any:
        heads: Any = self.num_attention_heads
        # Recorded steps pass a full mask [B, 1, T, T] with equal rows (``TransformerEncoder``).
        is_full = attention_mask is not None and attention_mask.dtype == torch.bool and attention_mask.ndim == 4
        if not self.training or not is_full or not can_use_kernels(hidden_states, heads):
            return super().forward(hidden_states, attention_mask, *arguments, **options)
        assert attention_mask is not None
        dropout: Any = self.dropout
        mixed = attend(hidden_states, *self._joint_layer(), attention_mask[:, 0, 0], heads, dropout.p)
        return mixed, None  # the library expects weights of attention, too

    def _joint_layer(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of the layer that computes queries, keys and values."""
        parts: list[Any] = [getattr(self, name) for name in PROJECTIONS]
        return torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts])


def attend(states: Tensor, weight: Tensor, bias: Tensor, mask: Tensor, heads: int, dropout: float) -> Tensor:
    """Self-attention of ``states`` [B, T, d] to the words of ``mask`` [B, T]."""
    from spanwise.encoders.attention_kernels import TextAttention

    kind = states.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
    projected = fast_linear(states.to(dtype), weight.to(dtype), bias.to(dtype))
    mixed: Tensor = TextAttention.apply(projected, mask, heads, dropout)  # type: ignore[no-untyped-call]
    return mixed


def can_use_kernels(states: Tensor, heads: int) -> bool:
    """Whether kernels can compute the attention of ``states`` [B, T, d]: short texts in training on a GPU, with Triton."""
    if not states.is_cuda or not torch.is_grad_enabled() or not uses_experimental_kernels():
        return False
    length, size = states.shape[1], states.shape[2] // heads
    block = max(16, 1 << (length - 1).bit_length())  # the length, padded to a power of two
    return size in HEAD_SIZES and size * block <= LARGEST_TILE and _works(states.device, heads, size, block)


@cache
def _works(device: torch.device, heads: int, size: int, block: int) -> bool:
    """Whether kernels can compute attention of this shape."""

    def step() -> Tensor:
        states = torch.zeros(1, block, heads * size, device=device, requires_grad=True)
        weight, bias = states.new_zeros(3 * heads * size, heads * size), states.new_zeros(3 * heads * size)
        mask = torch.ones(1, block, dtype=torch.bool, device=device)
        return attend(states, weight, bias, mask, heads, 0.1)

    return can_train(step, device)
