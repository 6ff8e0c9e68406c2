"""Maximum and mean over the words of packed spans."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Maxima:
    """Element-wise maxima over the words of spans of up to ``width`` words in ``words`` [B, T, d].

    A sparse table: level k holds the maxima over every 2^k adjacent words, computed from two entries
    of the level below. A span of n words is covered by two entries, which may overlap, of the largest
    level with 2^k < n. So ceil(log2 width) levels and two look-ups per span suffice for any width.
    Entries never extend beyond the span, so padding does not matter.
    """

    def __init__(self, words: Tensor, width: int) -> None:
        self.length = words.shape[1]
        width = min(width, self.length)
        levels, size = [words], 1
        while 2 * size < width:
            levels.append(elementwise_max(levels[-1][:, :-size], levels[-1][:, size:]))
            size *= 2
        self.table = torch.cat(levels, dim=1) if len(levels) > 1 else words
        self.widths = 2 ** torch.arange(1, len(levels), device=words.device)  # largest span width of each level but the last

    def __call__(self, sentence: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """The maxima of S packed spans: [S, d]."""
        rows, size = self.table.shape[1:]
        level = torch.bucketize(end - start, self.widths)
        sizes = 2**level
        # Level k has length + 1 - 2^k rows, so it starts after k * (length + 1) - (2^k - 1) rows.
        offset = sentence * rows + level * (self.length + 1) - sizes + 1
        table = self.table.reshape(-1, size)
        return elementwise_max(table.index_select(0, offset + start), table.index_select(0, offset + end - sizes))


def max_pool(words: Tensor, sentence: Tensor, start: Tensor, end: Tensor, width: int) -> Tensor:
    """The element-wise maximum over the words of each span, [S, d], for spans of at most ``width`` words.

    >>> words = torch.tensor([[[1.0, 5.0], [2.0, 4.0], [3.0, 0.0]]])
    >>> max_pool(words, torch.tensor([0, 0]), torch.tensor([0, 1]), torch.tensor([3, 2]), width=3)
    tensor([[3., 5.],
            [2., 4.]])
    """
    return Maxima(words, width)(sentence, start, end)


def mean_pool(words: Tensor, sentence: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """The mean over the words of each span, [S, d] in float32, as a difference of running sums.

    >>> words = torch.tensor([[[1.0], [2.0], [6.0]]])
    >>> mean_pool(words, torch.tensor([0, 0]), torch.tensor([0, 1]), torch.tensor([3, 2]))
    tensor([[3.],
            [2.]])
    """
    sums = torch.nn.functional.pad(words.float().cumsum(1), (0, 0, 1, 0))
    rows, size = sums.shape[1:]
    sums, offset = sums.reshape(-1, size), sentence * rows
    return (sums.index_select(0, offset + end) - sums.index_select(0, offset + start)) / (end - start).unsqueeze(1)


def elementwise_max(first: Tensor, second: Tensor) -> Tensor:
    """The element-wise maximum. If both are equal, the first gets the whole gradient.

    ``torch.maximum`` splits it, which makes its backward pass about ten times as slow on a CPU.
    """
    result: Tensor = _ElementwiseMax.apply(first, second)  # type: ignore[no-untyped-call]
    return result


class _ElementwiseMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor) -> Tensor:
        result = torch.maximum(first, second)
        if any(ctx.needs_input_grad):
            # Floats instead of booleans, because multiplication is faster than selection.
            ctx.save_for_backward(torch.ge(first, second, out=torch.empty_like(result)))
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        (is_first,) = ctx.saved_tensors
        first_gradient = gradient * is_first
        return first_gradient, gradient - first_gradient
