# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""The maximum over the words of spans in Triton: one kernel forward and one backward.

Each word gathers its gradient from the spans around it, so sums have a fixed order.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from spanwise.runtime.shared_kernels import load_floats

SPAN_BLOCK, FORWARD_COLUMNS = 16, 128  # spans and columns per program
WORD_BLOCK, ROW_BLOCK, BACKWARD_COLUMNS = 8, 16, 64  # words and columns per program, rows that it reads at once
STEPS = tl.constexpr(4)  # words of a span that are read at once


@triton.jit(do_not_specialize=["count"])
def _forward(
    words, first_word, width, result, positions, count, SIZE: tl.constexpr, WIDEST: tl.constexpr, BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """The maxima of a block of spans, and the position in the span of the first word that has the maximum."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    is_row = rows < count
    is_column = (columns < SIZE)[None, :]
    first = tl.load(first_word + rows, mask=is_row, other=0)
    sizes = tl.load(width + rows, mask=is_row, other=0)
    largest = tl.full([BLOCK, COLUMNS], float("-inf"), tl.float32)
    position = tl.zeros([BLOCK, COLUMNS], tl.int32)
    for start in range(0, WIDEST, STEPS):
        for step in tl.static_range(STEPS):
            offset = start + step
            is_inside = (offset < sizes)[:, None] & is_column
            value = load_floats(words + (first + offset)[:, None] * SIZE + columns[None, :], is_inside)
            is_larger = is_inside & (value > largest)
            largest = tl.where(is_larger, value, largest)
            position = tl.where(is_larger, offset, position)
    here = rows[:, None] * SIZE + columns[None, :]
    exists = is_row[:, None] & is_column
    tl.store(result + here, largest, mask=exists)
    tl.store(positions + here, position, mask=exists)


@triton.jit(do_not_specialize=["length", "blocks"])
def _backward(
    first_word, first_row, last_row, positions, gradient, word_gradient, length, blocks, SIZE: tl.constexpr,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of words, from the rows of all spans that may contain one of them.

    The sums are [words, rows, columns], so that rows are added only at the end.
    """
    sentence = tl.program_id(0) // blocks
    first = (tl.program_id(0) % blocks) * BLOCK
    places = first + tl.arange(0, BLOCK)
    is_word = places < length
    words = sentence * length + places
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    is_column = columns < SIZE
    lower = tl.zeros([BLOCK, ROWS, COLUMNS], tl.float32)
    start = tl.load(first_row + sentence * length + first)
    stop = tl.load(last_row + sentence * length + tl.minimum(first + BLOCK, length) - 1)
    for step in range(start, stop, ROWS):
        rows = step + tl.arange(0, ROWS)
        is_row = rows < stop
        exists = is_row[None, :, None] & is_column[None, None, :]
        here = rows[None, :, None] * SIZE + columns[None, None, :]
        upper = load_floats(gradient + here, exists)
        begin = tl.load(first_word + rows[None, :, None], mask=is_row[None, :, None], other=0)
        source = begin + tl.load(positions + here, mask=exists, other=0)
        lower += tl.where(source == words[:, None, None], upper, 0.0)
    there = words[:, None] * SIZE + columns[None, :]
    tl.store(word_gradient + there, tl.sum(lower, 1), mask=is_word[:, None] & is_column[None, :])


class SpanMaxima(torch.autograd.Function):
    """Arguments: words [B, T, d], the four tensors of a ``SpanIndex``, and the widest span. Result: [S, d].

    If several words have the maximum, the first gets the whole gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, words: Tensor, first_word: Tensor, width: Tensor, first_row: Tensor, last_row: Tensor, widest: int
    ) -> Tensor:
        words = words.contiguous()
        count, size = len(first_word), words.shape[2]
        result, positions = words.new_empty(count, size), words.new_empty(count, size, dtype=torch.int32)
        grid = (triton.cdiv(count, SPAN_BLOCK), triton.cdiv(size, FORWARD_COLUMNS))
        if count:
            _forward[grid](words, first_word, width, result, positions, count, size, widest, SPAN_BLOCK, FORWARD_COLUMNS)
        ctx.shape = words.shape
        ctx.save_for_backward(first_word, first_row, last_row, positions)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        first_word, first_row, last_row, positions = ctx.saved_tensors
        batch, length, size = ctx.shape
        blocks = triton.cdiv(length, WORD_BLOCK)
        lower = gradient.new_empty(ctx.shape)
        _backward[(batch * blocks, triton.cdiv(size, BACKWARD_COLUMNS))](
            first_word, first_row, last_row, positions, gradient.contiguous(), lower, length, blocks, size,
            WORD_BLOCK, ROW_BLOCK, BACKWARD_COLUMNS,
        )  # fmt: skip
        return lower, *(None,) * 5
