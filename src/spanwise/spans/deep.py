"""The span transformer of DSpERT (section 3): encoder layers whose queries are spans instead of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from copy import deepcopy
from itertools import chain
from typing import Literal

import torch
from torch import Tensor, nn

from spanwise.encoders.layers import LayerParts
from spanwise.encoders.residual_norm import residual_norm
from spanwise.runtime.dropout_seeds import shared_seeds
from spanwise.runtime.fast_linear import is_plain_linear, joint_linear
from spanwise.spans.attention_pooling import AttentionPooling
from spanwise.spans.blocks import Blocks
from spanwise.spans.kernels import attend_with_kernels, can_use_kernels, can_use_max_kernels, max_with_kernels
from spanwise.spans.pooling import max_pool, mean_pool

Aggregation = Literal["max", "mean", "multiplicative", "additive"]


class SpanTransformer(nn.Module):
    """Span states, layer by layer: the query is the span's state, keys and values are the states of its words one layer below.

    The first state of a span aggregates the states of its words below the lowest layer used. One set
    of weights serves all widths: a copy of the encoder's layers or, with ``shared``, these layers
    themselves. Without ``layers`` only the aggregation remains (shallow spans).

    Keys and values are projected once per word, not once per span and word. A span has no single
    position, so MPNet's bias for the distance of query and key is omitted: spans attend by content,
    which includes absolute positions.

    With ``trains_in_bfloat16``, training computes products and attention in bfloat16, but sums and norms
    in float32.
    """

    def __init__(
        self, size: int, layers: Sequence[LayerParts], *, shared: bool, aggregation: Aggregation, dropout: float
    ) -> None:
        super().__init__()
        self._sources = tuple(layers)
        self._layers = tuple(layers if shared else deepcopy(list(layers)))
        # Shared layers belong to the encoder, so they are not parameters of this module.
        self.copies = nn.ModuleList(() if shared else (nn.ModuleDict(layer.modules) for layer in self._layers))
        self.copies.requires_grad_(True)  # the encoder's layers may be frozen
        self.dropout = nn.Dropout(dropout)
        self.pool = _pooling(size, aggregation)
        self.trains_in_bfloat16 = False

    def reload_copies(self) -> None:
        """Copy the encoder's layers again, after its weights have changed."""
        for copy, source in zip(self.copies, self._sources, strict=False):  # shared layers have no copies
            assert isinstance(copy, nn.ModuleDict)
            for name, module in source.modules.items():
                copy[name].load_state_dict(module.state_dict())

    def pretrained_parameters(self) -> Sequence[nn.Parameter]:
        """The parameters of the copied layers."""
        return list(chain.from_iterable(copy.parameters() for copy in self.copies))

    def forward(self, words: Sequence[Tensor], blocks: Blocks) -> Tensor:
        """The states of the spans of ``blocks`` [S, d].

        ``words`` [B, T, d] are the inputs of each of the layers, lowest first; without layers, only the top states.
        """
        spans = self.pool(self.dropout(words[0]), blocks)
        is_mixed = self.trains_in_bfloat16 and self.training
        with shared_seeds(), torch.autocast(spans.device.type, torch.bfloat16) if is_mixed else nullcontext():
            for layer, layer_words in zip(self._layers, words, strict=bool(self._layers)):
                spans = self._layer(layer, spans, layer_words, blocks)
        return spans

    def _layer(self, layer: LayerParts, spans: Tensor, words: Tensor, blocks: Blocks) -> Tensor:
        modules = layer.modules
        dropout = layer.attention_dropout if self.training else 0.0
        query, key, value = modules["query"](spans), modules["key"], modules["value"]
        is_plain = is_plain_linear(key) and is_plain_linear(value)
        if is_plain and torch.is_grad_enabled() and can_use_kernels(query, layer.heads, blocks.max_width):
            # In training on a GPU, keys and values are one product, and attention needs no blocks.
            projected = joint_linear(words, (key, value))
            attended = attend_with_kernels(query, projected, blocks.index, layer.heads, blocks.max_width, dropout)
        else:
            attended = blocks.attend(query, key(words), value(words), layer.heads, dropout)
        mixing, norm = modules["mixing"], modules["mixing_norm"]
        spans = residual_norm(spans, attended, mixing, norm, layer.dropout, training=self.training)
        hidden = layer.activation(modules["inner"](spans))
        outer, norm = modules["outer"], modules["outer_norm"]
        return residual_norm(spans, hidden, outer, norm, layer.dropout, training=self.training)


def _pooling(size: int, aggregation: Aggregation) -> Callable[[Tensor, Blocks], Tensor]:
    if aggregation == "max":
        return _max
    return _mean if aggregation == "mean" else AttentionPooling(size, aggregation)


def _max(words: Tensor, blocks: Blocks) -> Tensor:
    if torch.is_grad_enabled() and can_use_max_kernels(words, blocks.max_width):
        return max_with_kernels(words, blocks.index, blocks.max_width)
    return max_pool(words, blocks.sentence, blocks.start, blocks.end, blocks.width)


def _mean(words: Tensor, blocks: Blocks) -> Tensor:
    return mean_pool(words, blocks.sentence, blocks.start, blocks.end).to(words.dtype)
