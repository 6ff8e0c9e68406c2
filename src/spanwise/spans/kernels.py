"""The choice of Triton kernels for the attention of spans, where they can be used."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from spanwise.runtime.experimental import uses_experimental_kernels
from spanwise.runtime.faster_layers import can_train

HEAD_SIZES = (16, 32, 64, 128)  # values per head; Triton needs a power of two, and more do not fit into registers


class SpanIndex(NamedTuple):
    """The words of S spans and the spans of B x T words, for kernels."""

    first_word: Tensor  # [S], numbered through all sentences
    width: Tensor  # [S]
    first_row: Tensor  # [B x T]: the spans with this word are among the rows from here
    last_row: Tensor  # [B x T]: to here, exclusive


def can_use_kernels(queries: Tensor, heads: int) -> bool:
    """Whether kernels can compute the attention of ``queries`` [S, d]: on a GPU, if Triton works there."""
    is_supported = queries.is_cuda and queries.shape[1] // heads in HEAD_SIZES
    return is_supported and uses_experimental_kernels() and _works(queries.device)


def attend_with_kernels(
    queries: Tensor, keys: Tensor, values: Tensor, index: SpanIndex, heads: int, width: int, dropout: float
) -> Tensor:
    """Attention of each span to its words, as ``Blocks.attend`` computes it."""
    from spanwise.spans.attention_kernels import SpanAttention

    attended: Tensor = SpanAttention.apply(queries, keys, values, *index, heads, width, dropout)  # type: ignore[no-untyped-call]
    return attended


@cache
def _works(device: torch.device) -> bool:
    """Whether kernels can compute the attention of a span."""

    def step() -> Tensor:
        words = torch.zeros(1, 2, 32, device=device, requires_grad=True)
        zero, two = (torch.full((2,), value, dtype=torch.int32, device=device) for value in (0, 2))
        index = SpanIndex(zero[:1], two[:1], zero, two // 2)
        return attend_with_kernels(words[:, 0], words, words, index, 2, 2, 0.1)

    return can_train(step, device)
