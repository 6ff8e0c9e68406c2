"""The choice of Triton kernels for the attention and the maxima of spans, where they can be used."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from spanwise.runtime.kernel_choice import MAX_VALUES, example_values, kernels_agree, uses_kernels
from spanwise.spans.pooling import max_pool

HEAD_SIZES = (16, 32, 64, 128)  # values per head; Triton needs a power of two, and more do not fit into registers


class SpanIndex(NamedTuple):
    """The words of S spans and the spans of B x T words, for kernels."""

    first_word: Tensor  # [S], numbered through all sentences
    width: Tensor  # [S]
    first_row: Tensor  # [B x T]: the spans with this word are among the rows from here
    last_row: Tensor  # [B x T]: to here, exclusive


def can_use_kernels(queries: Tensor, heads: int, width: int) -> bool:
    """Whether kernels can compute the attention of ``queries`` [S, d] of up to ``width`` words: on a GPU, if Triton works."""
    size = queries.shape[1] // heads
    if not queries.is_cuda or not uses_kernels() or size not in HEAD_SIZES or queries.numel() >= MAX_VALUES:
        return False
    return _works(queries.device, heads, size, width, queries.dtype)


def attend_with_kernels(
    queries: Tensor, words: Tensor, index: SpanIndex, heads: int, width: int, dropout: float
) -> Tensor:  # fmt: skip
    """Attention of each span to its words, as ``Blocks.attend`` computes it; ``words`` are keys and values [B, T, 2 d]."""
    from spanwise.spans.attention_kernels import SpanAttention

    attended: Tensor = SpanAttention.apply(queries, words, *index, heads, width, dropout)  # type: ignore[no-untyped-call]
    return attended


@cache
def _works(device: torch.device, heads: int, size: int, width: int, dtype: torch.dtype) -> bool:
    """Whether kernels compute the attention of spans of up to ``width`` words in this shape and type."""
    length, start, end, index = _example_spans(device, width)
    inputs = [example_values(length, heads * size, device=device, dtype=dtype, seed=seed) for seed in range(3)]
    is_inside = (start >= start.unsqueeze(1)) & (start < end.unsqueeze(1))

    def reference(*inputs: Tensor) -> Tensor:
        query, key, value = (vectors.view(1, length, heads, size).transpose(1, 2) for vectors in inputs)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=is_inside)
        return mixed.transpose(1, 2).reshape(length, -1)

    def kernels(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return attend_with_kernels(queries, torch.cat((keys, values), 1).unsqueeze(0), index, heads, width, 0.0)

    return kernels_agree("span attention", kernels, reference, inputs)


def can_use_max_kernels(words: Tensor, width: int) -> bool:
    """Whether kernels can compute the maxima of spans of up to ``width`` words in ``words`` [B, T, d]: on a GPU."""
    if not words.is_cuda or not uses_kernels() or words.numel() * width >= MAX_VALUES:
        return False
    return _maxima_work(words.device, words.shape[2], width, words.dtype)


def max_with_kernels(words: Tensor, index: SpanIndex, width: int) -> Tensor:
    """The element-wise maximum over the words of each span [S, d], as ``max_pool`` computes it."""
    from spanwise.spans.max_kernels import SpanMaxima

    maxima: Tensor = SpanMaxima.apply(words, *index, width)  # type: ignore[no-untyped-call]
    return maxima


@cache
def _maxima_work(device: torch.device, size: int, width: int, dtype: torch.dtype) -> bool:
    """Whether kernels compute maxima of spans of up to ``width`` words of this size and type."""
    length, start, end, index = _example_spans(device, width)
    words = example_values(1, length, size, device=device, dtype=dtype)
    return kernels_agree(
        "span maximum",
        lambda words: max_with_kernels(words, index, width),
        lambda words: max_pool(words, torch.zeros_like(start), start, end, width),
        [words],
    )


def _example_spans(device: torch.device, width: int) -> tuple[int, Tensor, Tensor, SpanIndex]:
    """A number of words, and the widest span from each of them: start, end and index."""
    length = width + 2
    start = torch.arange(length, device=device)
    end = (start + width).clamp(max=length)
    index = SpanIndex(*(column.int() for column in (start, end - start, (start - width + 1).clamp(min=0), start + 1)))
    return length, start, end, index
