"""Embeddings whose second pass adds to the gradient of the first.

The gradient of a table has as many values as the table, but a batch reads few of its rows. A second
pass that adds only these rows needs neither a second gradient nor a sum of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from spanwise.runtime.faster_layers import exchange_class


class SummingEmbedding(nn.Embedding):
    """An embedding that adds its gradient to ``total``, if given, and otherwise leaves it to PyTorch."""

    total: Tensor | None = None

    def forward(self, input: Tensor) -> Tensor:
        if self.total is None:
            return super().forward(input)
        rows: Tensor = _Rows.apply(self.weight, input, self.padding_idx, self.total)  # type: ignore[no-untyped-call]
        return rows


def find_embeddings(model: nn.Module, tables: Iterable[Tensor]) -> list[SummingEmbedding]:
    """Turn the plain embeddings of a model with one of these tables into ``SummingEmbedding``, in place."""
    table_ids, embeddings = {id(table) for table in tables}, []
    for module in model.modules():
        is_plain = type(module) is nn.Embedding and not (module.sparse or module.scale_grad_by_freq or module.max_norm)
        if is_plain and id(module.weight) in table_ids:
            exchange_class(module, SummingEmbedding)
        if isinstance(module, SummingEmbedding):
            embeddings.append(module)
    return embeddings


@contextmanager
def add_to_gradients(embeddings: Iterable[SummingEmbedding], totals: Mapping[Any, Tensor]) -> Iterator[None]:
    """Add the gradients of passes within this block to ``totals``, the gradients by parameter.

    >>> embedding = SummingEmbedding(3, 1)
    >>> total = torch.ones(3, 1)
    >>> with add_to_gradients([embedding], {embedding.weight: total}):
    ...     embedding(torch.tensor([0, 2, 2])).sum().backward()
    >>> total.tolist(), embedding.weight.grad
    ([[2.0], [1.0], [3.0]], None)
    """
    embeddings = list(embeddings)
    for embedding in embeddings:
        embedding.total = totals.get(embedding.weight)
    try:
        yield
    finally:
        for embedding in embeddings:
            embedding.total = None


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, indices: Tensor, padding: int | None, total: Tensor) -> Tensor:
        ctx.save_for_backward(indices)
        ctx.padding, ctx.total = padding, total
        return F.embedding(indices, table)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None, None]:
        (indices,) = ctx.saved_tensors
        if ctx.padding is not None:
            gradient = gradient.masked_fill((indices == ctx.padding).unsqueeze(-1), 0.0)
        ctx.total.index_add_(0, indices.reshape(-1), gradient.reshape(-1, gradient.shape[-1]).to(ctx.total.dtype))
        return None, None, None, None
