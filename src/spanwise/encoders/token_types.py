"""The embedding of token types, which are all 0 because an input is one text."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from spanwise.runtime.faster_layers import exchange_class


class FirstRow(nn.Embedding):
    """An embedding for ids that are all 0.

    Its gradient is a sum. That of ``nn.Embedding`` adds one row after the other to the same row, which
    takes a GPU longer than a layer of a small encoder.
    """

    def forward(self, input: Tensor) -> Tensor:
        return self.weight[0].expand(*input.shape, -1)


def simplify_token_types(model: Any) -> None:
    """Use ``FirstRow`` for the token types of a transformer, in place, if it has any."""
    types = getattr(getattr(model, "embeddings", None), "token_type_embeddings", None)
    if type(types) is nn.Embedding:
        exchange_class(types, FirstRow)
