"""The words of a span made into one vector, for many packed spans at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Maxima:
    """The element-wise maximum over the words of any spans: ``words`` [B, T, d] once, spans of at most ``width`` words at will.

    A sparse table: level k holds the maxima over every run of 2^k words, each level the maxima of two runs of the level
    below. A span of n words is covered by two runs, which may overlap, of the largest level with 2^k < n; so ceil(log2 width)
    levels and two look-ups per span serve, however wide the spans are. No run that a span uses leaves the span, so what
    stands behind a sentence's end never matters.
    """

    def __init__(self, words: Tensor, width: int) -> None:
        self.length = words.shape[1]
        width = min(width, self.length)
        levels, run = [words], 1
        while 2 * run < width:
            levels.append(larger(levels[-1][:, :-run], levels[-1][:, run:]))
            run *= 2
        self.table = torch.cat(levels, dim=1) if len(levels) > 1 else words
        self.widths = 2 ** torch.arange(1, len(levels), device=words.device)  # up to which a level serves

    def __call__(self, sentence: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """The maxima of S packed spans: [S, d]."""
        rows, size = self.table.shape[1:]
        level = torch.bucketize(end - start, self.widths)
        runs = 2**level
        # Level k has length + 1 - 2^k rows, so it begins behind k * (length + 1) - (2^k - 1) others.
        offset = sentence * rows + level * (self.length + 1) - runs + 1
        table = self.table.reshape(-1, size)
        return larger(table.index_select(0, offset + start), table.index_select(0, offset + end - runs))


def max_pool(words: Tensor, sentence: Tensor, start: Tensor, end: Tensor, width: int) -> Tensor:
    """The element-wise maximum over each span's words: ``words`` [B, T, d] and S spans of at most ``width`` words to [S, d].

    >>> words = torch.tensor([[[1.0, 5.0], [2.0, 4.0], [3.0, 0.0]]])
    >>> max_pool(words, torch.tensor([0, 0]), torch.tensor([0, 1]), torch.tensor([3, 2]), width=3)
    tensor([[3., 5.],
            [2., 4.]])
    """
    return Maxima(words, width)(sentence, start, end)


def mean_pool(words: Tensor, sentence: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """The mean over the words of each span, ``words`` [B, T, d] and S spans to [S, d] in float32: a difference of running sums.

    >>> words = torch.tensor([[[1.0], [2.0], [6.0]]])
    >>> mean_pool(words, torch.tensor([0, 0]), torch.tensor([0, 1]), torch.tensor([3, 2]))
    tensor([[3.],
            [2.]])
    """
    sums = torch.nn.functional.pad(words.float().cumsum(1), (0, 0, 1, 0))
    rows, size = sums.shape[1:]
    sums, offset = sums.reshape(-1, size), sentence * rows
    return (sums.index_select(0, offset + end) - sums.index_select(0, offset + start)) / (end - start).unsqueeze(1)


def larger(one: Tensor, other: Tensor) -> Tensor:
    """The element-wise maximum. Where both are equal the first gets the whole gradient.

    ``torch.maximum`` shares it there, which makes its backward pass about ten times as slow on a CPU.
    """
    result: Tensor = _Larger.apply(one, other)  # type: ignore[no-untyped-call]
    return result


class _Larger(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, one: Tensor, other: Tensor) -> Tensor:
        result = torch.maximum(one, other)
        if any(ctx.needs_input_grad):
            # As numbers, not booleans: multiplying by them is quicker than selecting.
            ctx.save_for_backward(torch.ge(one, other, out=torch.empty_like(result)))
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        (first,) = ctx.saved_tensors
        ours = gradient * first
        return ours, gradient - ours
