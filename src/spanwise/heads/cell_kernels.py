# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""The cells of a grid before its convolutions in Triton: sums of words, layer norm, GELU and dropout in one kernel.

There is a cell for each span of up to W words, so the cells [B, T, W, d] are large, and memory limits what
is computed with them. Programs read blocks of cells. Cells outside the sentences are 0 and have no
gradient.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from spanwise.heads.cell_norm_kernels import ROWS, differentiate_norm, load_block, normal_cdf
from spanwise.runtime.shared_kernels import drop, dropout_seed, load_floats, normalize, random_numbers
from spanwise.runtime.sum_kernels import sum_columns


@triton.jit(do_not_specialize=["count"])
def _join(
    words, products, widths, weight, bias, inside, result, total_cells, means, scales, seed, count, epsilon, dropout,
    SIZE: tl.constexpr, LAST: tl.constexpr, CONTENT: tl.constexpr, SPANS: tl.constexpr, HAS_PRODUCT: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Cells from words: first + last + width (+ product) (+ maximum), then norm, GELU and dropout."""
    rows, columns, here, exists, is_inside = load_block(inside, tl.program_id(0), count, ROWS, WIDTH, BLOCK)
    column = rows % SPANS
    first = (rows // SPANS)[:, None] * SIZE + columns[None, :]
    total = load_floats(words + first, is_inside)
    total += load_floats(words + first + column[:, None] * SIZE + LAST, is_inside)
    total += load_floats(widths + column[:, None] * WIDTH + columns[None, :], is_inside)
    if HAS_PRODUCT:
        total += load_floats(products + here, is_inside)
    if CONTENT > 0:
        maximum = load_floats(words + first + CONTENT, is_inside)
        for step in range(1, SPANS):
            is_read = is_inside & (column >= step)[:, None]
            value = load_floats(words + first + step * SIZE + CONTENT, is_read)
            maximum = tl.where(is_read, tl.maximum(maximum, value), maximum)
        total += maximum
    normal, mean, scale = normalize(total, is_inside, epsilon, WIDTH)
    factors = load_floats(weight + columns, columns < WIDTH)
    offsets = load_floats(bias + columns, columns < WIDTH)
    values = normal * factors[None, :] + offsets[None, :]
    values = tl.where(is_inside, values * normal_cdf(values), 0.0)
    values = drop(values, random_numbers(tl.load(seed), here) >= dropout, dropout)
    tl.store(result + here, values, mask=exists)
    tl.store(total_cells + here, total, mask=exists)
    tl.store(means + rows, mean, mask=rows < count)
    tl.store(scales + rows, scale, mask=rows < count)


@triton.jit(do_not_specialize=["count", "length"])
def _multiply(
    words, products, count, length, SIZE: tl.constexpr, LEFT: tl.constexpr, SPANS: tl.constexpr, ROWS: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The products of the first and the last word of each cell."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    exists = (rows < count)[:, None] & (columns < WIDTH)[None, :]
    word, column = rows // SPANS, rows % SPANS
    is_read = exists & (word % length + column < length)[:, None]
    first = words + word[:, None] * SIZE + LEFT + columns[None, :]
    right = load_floats(first + column[:, None] * SIZE + WIDTH, is_read)
    tl.store(products + rows[:, None] * WIDTH + columns[None, :], load_floats(first, is_read) * right, mask=exists)


@triton.jit(do_not_specialize=["length"])
def _words_backward(
    words, cell_gradient, product_gradient, gradient, length,
    SIZE: tl.constexpr, CHANNELS: tl.constexpr, RANK: tl.constexpr, CONTENT: tl.constexpr, SPANS: tl.constexpr,
    STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of a word: of the cells that start or end at it, and of those whose maximum it is."""
    word = tl.program_id(0)
    position = word % length
    columns = tl.arange(0, BLOCK)
    is_column = columns < CHANNELS
    steps = tl.arange(0, STEPS)
    starts_here = (steps < SPANS) & (position + steps < length)  # cells of ``steps`` + 1 words that start here
    ends_here = (steps < SPANS) & (steps <= position)  # and those that end here
    starting, ending = word * SPANS + steps, (word - steps) * SPANS + steps
    here = words + word * SIZE + columns
    target = gradient + word * SIZE + columns
    cells = cell_gradient + columns[None, :]
    values = load_floats(cells + starting[:, None] * CHANNELS, starts_here[:, None] & is_column[None, :])
    tl.store(target, tl.sum(values, 0), mask=is_column)
    values = load_floats(cells + ending[:, None] * CHANNELS, ends_here[:, None] & is_column[None, :])
    tl.store(target + CHANNELS, tl.sum(values, 0), mask=is_column)
    if RANK > 0:
        is_factor = columns < RANK
        left = words + word * SIZE + 2 * CHANNELS + columns[None, :]
        products = product_gradient + columns[None, :]
        is_read = starts_here[:, None] & is_factor[None, :]
        values = load_floats(products + starting[:, None] * RANK, is_read)
        values *= load_floats(left + steps[:, None] * SIZE + RANK, is_read)
        tl.store(target + 2 * CHANNELS, tl.sum(values, 0), mask=is_factor)
        is_read = ends_here[:, None] & is_factor[None, :]
        values = load_floats(products + ending[:, None] * RANK, is_read) * load_floats(left - steps[:, None] * SIZE, is_read)
        tl.store(target + 2 * CHANNELS + RANK, tl.sum(values, 0), mask=is_factor)
    if CONTENT > 0:
        # Of equal words the last is the maximum. Triton's interpreter combines masks with blocks only.
        place = position + tl.zeros([BLOCK], tl.int32)
        value = load_floats(here + CONTENT, is_column)
        is_largest = ends_here[:, None] & is_column[None, :]  # in the words from ``steps`` before to this one
        for step in range(1, SPANS):
            earlier = load_floats(here + CONTENT - step * SIZE, is_column & (place >= step))
            is_largest = is_largest & ((earlier <= value)[None, :] | (steps < step)[:, None])
        total = load_floats(cells + ending[:, None] * CHANNELS, is_largest)
        for after in range(1, SPANS):
            is_later = is_column & (place + after < length)
            later = load_floats(here + CONTENT + after * SIZE, is_later)
            is_largest = is_largest & is_later[None, :] & (later < value)[None, :]
            is_read = is_largest & (steps + after < SPANS)[:, None]
            total += load_floats(cells + (ending + after)[:, None] * CHANNELS, is_read)
        tl.store(target + CONTENT, tl.sum(total, 0), mask=is_column)


class JoinedCells(torch.autograd.Function):
    """Cells before the convolutions.

    Arguments: projected words [B, T, first | last | left | right | content]; the weight of the product, or None; the
    vectors of widths [W, d]; weight and bias of the norm; which cells are spans [B, T, W]; epsilon, dropout, and whether
    words have a content.
    """

    @staticmethod
    def forward(
        ctx: Any, words: Tensor, product: Tensor | None, widths: Tensor, weight: Tensor, bias: Tensor, inside: Tensor,
        epsilon: float, dropout: float, has_content: bool,
    ) -> Tensor:  # fmt: skip
        words, inside = words.contiguous(), inside.contiguous().view(torch.uint8)
        (_, length, size), (spans, width), count = words.shape, widths.shape, inside.numel()
        rank = 0 if product is None else product.shape[1]
        content = 2 * (width + rank) if has_content else 0  # the position of this part in a word
        block, blocks = triton.next_power_of_2(width), triton.cdiv(count, ROWS)
        result = words.new_empty(*inside.shape, width)
        means, scales = words.new_empty(count), words.new_empty(count)
        seed = dropout_seed(dropout, words.device)
        products, total = None, words.new_empty(count, width) if product is None else None
        if product is not None:
            products = words.new_empty(count, rank)
            shape = (size, 2 * width, spans, ROWS, rank, triton.next_power_of_2(rank))
            if count:
                _multiply[(blocks,)](words, products, count, length, *shape)
            total = products @ product.t()  # the other parts of a cell are added in place
        if count:
            _join[(blocks,)](
                words, total, widths, weight, bias, inside, result, total, means, scales, seed, count, epsilon, dropout,
                size, width, content, spans, product is not None, ROWS, width, block,
            )  # fmt: skip
        ctx.save_for_backward(words, product, weight, bias, inside, products, total, means, scales, seed)
        ctx.options = (dropout, content, spans)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        words, product, weight, bias, inside, products, total, means, scales, seed = ctx.saved_tensors
        dropout, content, spans = ctx.options
        lower, _, sums = differentiate_norm(total, None, weight, bias, inside, means, scales, gradient, seed, dropout)
        product_gradient = None if product is None else lower @ product
        words_gradient = torch.empty_like(words)
        rank = 0 if product is None else product.shape[1]
        block = triton.next_power_of_2(max(len(weight), rank))
        if words.numel():
            _words_backward[(words.shape[0] * words.shape[1],)](
                words, lower, product_gradient, words_gradient, words.shape[1], words.shape[2], len(weight), rank,
                content, spans, triton.next_power_of_2(spans), block,
            )  # fmt: skip
        weights = None if product is None else lower.t() @ products
        widths = sum_columns(lower.view(-1, spans * len(weight))).view(spans, -1)
        return words_gradient, weights, widths, sums[0], sums[1], None, None, None, None
