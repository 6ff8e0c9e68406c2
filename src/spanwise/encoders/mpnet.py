"""Fast attention for MPNet, whose layers in transformers compute attention step by step.

MPNet adds one bias to the scores of all layers: a value per head and distance. Here the bias and the
padding mask are combined once per pass, and each layer calls PyTorch's fused attention with it. No
step waits for the device, as CUDA graphs require. Weights and their names stay the same.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


def use_fused_attention(model: Any) -> None:
    """Replace the attention of an ``MPNetModel``, unless it is replaced already."""
    if isinstance(model.encoder, FusedEncoder):
        return
    for layer in model.encoder.layer:
        layer.attention.attn = FusedAttention(layer.attention.attn)
    model.encoder = FusedEncoder(model.encoder)


class FusedAttention(nn.Module):
    """Multi-head attention with an additive bias [B, heads, T, T]."""

    def __init__(self, original: Any) -> None:
        super().__init__()
        self.num_attention_heads, self.attention_head_size = original.num_attention_heads, original.attention_head_size
        self.q, self.k, self.v, self.o = original.q, original.k, original.v, original.o
        self.dropout = original.dropout

    def forward(self, states: Tensor, bias: Tensor, *unused: Any, **options: Any) -> tuple[Tensor]:
        shape = (*states.shape[:2], self.num_attention_heads, self.attention_head_size)
        query, key, value = (part(states).view(shape).transpose(1, 2) for part in (self.q, self.k, self.v))
        dropout = self.dropout.p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout)
        return (self.o(mixed.transpose(1, 2).flatten(2)),)


class FusedEncoder(nn.Module):
    """The layers of MPNet, which share one bias."""

    def __init__(self, original: Any) -> None:
        super().__init__()
        self.config = original.config
        self.layer, self.relative_attention_bias = original.layer, original.relative_attention_bias
        self.bucket = original.relative_position_bucket

    def forward(self, states: Tensor, attention_mask: Tensor, output_hidden_states: bool = False, **options: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutput

        bias = self._bias(states, attention_mask)
        all_states: list[Any] = [states]
        for layer in self.layer:
            all_states.append(layer(all_states[-1], bias)[0])
        hidden_states = tuple(all_states) if output_hidden_states else None
        return BaseModelOutput(last_hidden_state=all_states[-1], hidden_states=hidden_states)

    def _bias(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """The bias of distances [B, heads, T, T], very negative where a subword is padding."""
        kind = states.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype
        positions = torch.arange(states.shape[1], device=states.device)
        buckets = self.bucket(positions - positions.unsqueeze(1), num_buckets=self.config.relative_attention_num_buckets)
        bias: Tensor = self.relative_attention_bias(buckets).permute(2, 0, 1).to(dtype)
        bias = bias.expand(states.shape[0], -1, -1, -1)  # a trace would make len(states) a constant
        if mask is None:  # there is no padding
            return bias
        is_padding = ~mask if mask.dtype == torch.bool else mask < 0  # the library may have made it additive
        return bias.masked_fill(is_padding, torch.finfo(dtype).min)
