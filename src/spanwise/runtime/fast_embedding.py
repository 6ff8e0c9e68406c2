"""Rows of small tables for recorded training steps on a GPU.

The gradient of a table is a sum of rows per index. PyTorch sorts the indices for it, and sums the
rows of an index one after the other, which is slow where a few hundred rows are read thousands of
times, such as those of characters and padding. A product with a matrix of zeros and ones is fast
and always adds in the same order.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from spanwise.runtime.faster_layers import exchange_class

MAX_ROWS = 1024  # of a table for which the product is faster
MAX_CELLS = 1 << 26  # of the matrix of zeros and ones: 256 MB


class FastEmbedding(nn.Embedding):
    """An embedding that is fast in training on a GPU, with the weights and results of ``nn.Embedding``.

    Gradients differ in their last digits: products of a GPU may have the precision TF32.
    """

    def forward(self, input: Tensor) -> Tensor:
        if not input.is_cuda or not torch.is_grad_enabled():
            return super().forward(input)
        rows: Tensor = _Rows.apply(self.weight, input, self.padding_idx)  # type: ignore[no-untyped-call]
        return rows


def use_fast_embeddings(model: nn.Module) -> None:
    """Turn the embeddings with small tables into ``FastEmbedding``, in place."""
    for module in model.modules():
        if type(module) is nn.Embedding and module.num_embeddings <= MAX_ROWS and module.max_norm is None:
            exchange_class(module, FastEmbedding)


def select_rows(table: Tensor, indices: Tensor) -> Tensor:
    """The rows of a table [N, d] with these indices [...]: [..., d].

    >>> select_rows(torch.tensor([[1.0], [2.0]]), torch.tensor([[1, 1], [0, 1]])).squeeze(-1)
    tensor([[2., 2.],
            [1., 2.]])
    """
    if not table.is_cuda or not torch.is_grad_enabled() or len(table) * indices.numel() > MAX_CELLS:
        return F.embedding(indices, table)
    rows: Tensor = _Rows.apply(table, indices, None)  # type: ignore[no-untyped-call]
    return rows


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, indices: Tensor, padding: int | None) -> Tensor:
        ctx.save_for_backward(indices)
        ctx.rows, ctx.padding = len(table), padding
        return F.embedding(indices, table)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (indices,) = ctx.saved_tensors
        is_row = indices.reshape(-1, 1) == torch.arange(ctx.rows, device=indices.device)
        table = is_row.to(gradient.dtype).t() @ gradient.reshape(-1, gradient.shape[-1])
        if ctx.padding is not None:
            table[ctx.padding].zero_()
        return table, None, None
