"""The span transformer of DSpERT (section 3): layers of an encoder that let spans, not words, ask questions of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Literal

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from spanwise.encoders.layers import LayerParts
from spanwise.spans.attention_pooling import AttentionPooling
from spanwise.spans.blocks import Blocks
from spanwise.spans.pooling import max_pool, mean_pool

Aggregation = Literal["max", "mean", "multiplicative", "additive"]


class SpanTransformer(nn.Module):
    """Spans' states, layer by layer: the query is the span's state, keys and values are its words' states one layer below.

    A span's first state is an aggregate of its words' states below the lowest layer used. One set of weights serves all sizes.
    It is a copy of the encoder's own layers, or, with ``shared``, those layers themselves. Without ``layers`` only the
    aggregation is left, and spans are shallow.

    Keys and values are projected once per word, not once per span and word. A span stands at no single position, so MPNet's
    bias by the distance of query and key is left out: spans attend by content, in which absolute positions have their part.
    """

    def __init__(
        self, size: int, layers: Sequence[LayerParts], *, shared: bool, aggregation: Aggregation, dropout: float
    ) -> None:
        super().__init__()
        self._sources = tuple(layers)
        self._layers = tuple(layers if shared else deepcopy(list(layers)))
        # Shared layers belong to the encoder and are no part of this module's parameters.
        self.copies = nn.ModuleList(() if shared else (nn.ModuleDict(layer.modules) for layer in self._layers))
        self.copies.requires_grad_(True)  # the encoder's own may be frozen
        self.dropout = nn.Dropout(dropout)
        self.pool = _pooling(size, aggregation)

    def copy_again(self) -> None:
        """Take the encoder's layers as they are now."""
        for copy, source in zip(self.copies, self._sources, strict=False):  # shared layers have no copies
            assert isinstance(copy, nn.ModuleDict)
            for name, module in source.modules.items():
                copy[name].load_state_dict(module.state_dict())

    def pretrained_parameters(self) -> Sequence[nn.Parameter]:
        """Those that were copied."""
        return list(chain.from_iterable(copy.parameters() for copy in self.copies))

    def forward(self, words: Sequence[Tensor], blocks: Blocks) -> Tensor:
        """The states of the spans of ``blocks`` [S, d].

        ``words`` [B, T, d] are the states that enter each of the layers used, lowest first; without layers the top ones alone.
        """
        spans = self.pool(self.dropout(words[0]), blocks)
        for layer, below in zip(self._layers, words, strict=bool(self._layers)):
            spans = self._layer(layer, spans, below, blocks)
        return spans

    def _layer(self, layer: LayerParts, spans: Tensor, words: Tensor, blocks: Blocks) -> Tensor:
        part = layer.modules

        def heads(vectors: Tensor) -> Tensor:
            return vectors.view(*vectors.shape[:2], layer.heads, -1).transpose(1, 2)

        attended = F.scaled_dot_product_attention(
            heads(blocks.spread(part["query"](spans))),
            heads(blocks.windows(part["key"](words))),
            heads(blocks.windows(part["value"](words))),
            attn_mask=blocks.inside.unsqueeze(1),
            dropout_p=layer.attention_dropout if self.training else 0.0,
        )
        mixed = part["mixing"](blocks.packed(attended.transpose(1, 2).flatten(2)))
        spans = part["mixing_norm"](spans + F.dropout(mixed, layer.dropout, self.training))
        outer = part["outer"](layer.activation(part["inner"](spans)))
        result: Tensor = part["outer_norm"](spans + F.dropout(outer, layer.dropout, self.training))
        return result


def _pooling(size: int, aggregation: Aggregation) -> Callable[[Tensor, Blocks], Tensor]:
    if aggregation == "max":
        return _maximum
    return _mean if aggregation == "mean" else AttentionPooling(size, aggregation)


def _maximum(words: Tensor, blocks: Blocks) -> Tensor:
    return max_pool(words, blocks.sentence, blocks.start, blocks.end, blocks.width)


def _mean(words: Tensor, blocks: Blocks) -> Tensor:
    return mean_pool(words, blocks.sentence, blocks.start, blocks.end).to(words.dtype)
