"""Faster attention of BERT and its relatives in recorded training steps on a GPU.

Queries, keys and values are one product instead of three, and attention is one small kernel instead
of PyTorch's, which is made for long texts. Weights and their names stay the same.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from spanwise.runtime.fast_linear import is_plain_linear, joint_linear, product_type
from spanwise.runtime.faster_layers import FasterLayer, exchange_class
from spanwise.runtime.kernel_choice import MAX_VALUES, example_values, kernels_agree, uses_kernels

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
        projections = [getattr(self, name) for name in PROJECTIONS]
        can_join = is_full and all(map(is_plain_linear, projections))
        if not self.training or not can_join or not can_use_kernels(hidden_states, heads):
            return super().forward(hidden_states, attention_mask, *arguments, **options)
        assert attention_mask is not None
        dropout: Any = self.dropout
        projected = joint_linear(hidden_states, projections)
        mixed = attend_with_kernels(projected, attention_mask[:, 0, 0], heads, dropout.p)
        return mixed, None  # the library expects weights of attention, too


def attend_with_kernels(projected: Tensor, mask: Tensor, heads: int, dropout: float) -> Tensor:
    """Attention of queries, keys and values [B, T, 3 d] to the words of ``mask`` [B, T]."""
    from spanwise.encoders.attention_kernels import TextAttention

    mixed: Tensor = TextAttention.apply(projected, mask, heads, dropout)  # type: ignore[no-untyped-call]
    return mixed


def can_use_kernels(states: Tensor, heads: int) -> bool:
    """Whether kernels can compute the attention of ``states`` [B, T, d]: short texts in training on a GPU, with Triton."""
    if not states.is_cuda or not torch.is_grad_enabled() or not uses_kernels() or 3 * states.numel() >= MAX_VALUES:
        return False
    length, size = states.shape[1], states.shape[2] // heads
    block = max(16, 1 << (length - 1).bit_length())  # the length, padded to a power of two
    is_small = size in HEAD_SIZES and size * block <= LARGEST_TILE
    return is_small and _works(states.device, heads, size, block, product_type(states))


@cache
def _works(device: torch.device, heads: int, size: int, block: int, dtype: torch.dtype) -> bool:
    """Whether kernels compute attention of this shape and type."""
    length = block - 3
    projected = example_values(2, length, 3 * heads * size, device=device, dtype=dtype)
    mask = torch.arange(length, device=device) < torch.tensor([[length], [length - 5]], device=device)

    def reference(projected: Tensor) -> Tensor:
        query, key, value = (part.view(2, length, heads, size).transpose(1, 2) for part in projected.chunk(3, -1))
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask[:, None, None])
        return mixed.transpose(1, 2).flatten(2)

    return kernels_agree("attention", lambda parts: attend_with_kernels(parts, mask, heads, 0.0), reference, [projected])
