# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""The convolution over the characters of words and its maximum in Triton.

There are few different characters, so the products of all of them with the three columns of the filters
make a small table. The value of a filter at a character is the sum of three rows of it. Only the largest
value of each word is stored, with its three characters.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from spanwise.encoders.vocabulary import PADDING
from spanwise.runtime.shared_kernels import load_floats

TRIPLE = 3  # characters that a filter reads
BLOCK_VALUES, WARPS = 8192, 8  # values that a program of the backward pass compares at once


# Tensors of a batch have any alignment to eight bytes: a specialised kernel would be compiled twice.
@triton.jit(do_not_specialize=["length", "first", "count"], do_not_specialize_on_alignment=["table"])
def _forward(
    table, products, bias, result, triples, length, first, count,
    PADDING: tl.constexpr, WIDTH: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The largest value of each filter in a word, at least 0, and the three characters that it read."""
    word = tl.program_id(0)
    steps, columns = tl.arange(0, STEPS), tl.arange(0, BLOCK)
    is_column = columns < WIDTH
    characters = table + word * length + steps
    before = tl.load(characters - 1, mask=(steps > 0) & (steps <= length), other=PADDING)
    here = tl.load(characters, mask=steps < length, other=PADDING)
    after = tl.load(characters + 1, mask=steps + 1 < length, other=PADDING)
    is_read = (here != PADDING)[:, None] & is_column[None, :]
    rows = products + columns[None, :]
    values = load_floats(rows + (before * 3)[:, None] * WIDTH, is_read)
    values += load_floats(rows + (here * 3 + 1)[:, None] * WIDTH, is_read)
    values += load_floats(rows + (after * 3 + 2)[:, None] * WIDTH, is_read)
    values = tl.where(is_read, values, float("-inf"))
    best = tl.max(values, 0)
    position = tl.min(tl.where(values == best[None, :], steps[:, None], STEPS), 0)
    is_best = steps[:, None] == position[None, :]
    best = tl.maximum(best + load_floats(bias + columns, is_column), 0.0)
    row = (first + word) * WIDTH + columns
    tl.store(result + row, best, mask=is_column)
    tl.store(triples + row, tl.sum(tl.where(is_best, before[:, None], 0), 0), mask=is_column)
    tl.store(triples + count * WIDTH + row, tl.sum(tl.where(is_best, here[:, None], 0), 0), mask=is_column)
    tl.store(triples + 2 * count * WIDTH + row, tl.sum(tl.where(is_best, after[:, None], 0), 0), mask=is_column)


@triton.jit(do_not_specialize=["count"])
def _backward(
    result, triples, gradient, product_gradient, bias_gradient, count,
    PADDING: tl.constexpr, WIDTH: tl.constexpr, CHARACTERS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradients of all characters for one filter and one of its three columns, and of its bias."""
    column, part = tl.program_id(0), tl.program_id(1)
    characters = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    bias_sum = tl.zeros([ROWS], tl.float32)
    for first in range(0, count, ROWS):
        rows = first + tl.arange(0, ROWS)
        is_row = rows < count
        here = rows * WIDTH + column
        is_positive = load_floats(result + here, is_row) > 0.0
        upper = tl.where(is_positive, load_floats(gradient + here, is_row), 0.0)
        bias_sum += upper
        read = tl.load(triples + part * count * WIDTH + here, mask=is_row, other=PADDING)
        total += tl.sum(tl.where(read[:, None] == characters[None, :], upper[:, None], 0.0), 0)
    total = tl.where(characters == PADDING, 0.0, total)  # its vector stays 0
    target = product_gradient + (characters * 3 + part) * WIDTH + column
    tl.store(target, total, mask=characters < CHARACTERS)
    if part == 0:
        tl.store(bias_gradient + column, tl.sum(bias_sum, 0))


class CharacterMaxima(torch.autograd.Function):
    """The maximum of each filter over the characters of a word, at least 0: [words, filters].

    Arguments: the vectors of characters [V, d], that of padding is 0; weight [filters, d, 3] and bias of the
    convolution; tables of characters [words, length], whose rows end with padding.
    """

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor, *tables: Tensor) -> Tensor:
        matrix = weight.permute(1, 2, 0).reshape(weight.shape[1], -1)  # [d, 3 * filters]
        products = vectors @ matrix
        count, width = sum(map(len, tables)), len(weight)
        result = products.new_empty(count, width)
        triples = torch.empty(TRIPLE, count, width, dtype=torch.int32, device=vectors.device)
        first = 0
        for table in tables:
            length = table.shape[1]
            if len(table):
                _forward[(len(table),)](
                    table.contiguous(), products, bias, result, triples, length, first, count,
                    PADDING, width, triton.next_power_of_2(length), triton.next_power_of_2(width),
                )  # fmt: skip
            first += len(table)
        ctx.save_for_backward(vectors, matrix, result, triples)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        vectors, matrix, result, triples = ctx.saved_tensors
        count, width = result.shape
        products, bias = result.new_empty(len(vectors), TRIPLE * width), result.new_empty(width)
        block = triton.next_power_of_2(len(vectors))
        _backward[(width, TRIPLE)](
            result, triples, gradient.contiguous(), products, bias, count,
            PADDING, width, len(vectors), max(1, BLOCK_VALUES // block), block, num_warps=WARPS,
        )  # fmt: skip
        weight = (vectors.t() @ products).view(-1, TRIPLE, width).permute(2, 0, 1)
        return products @ matrix.t(), weight, bias, *[None] * (len(ctx.needs_input_grad) - 3)
