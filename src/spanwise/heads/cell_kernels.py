# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""The cells of a grid in Triton: sums of words, layer norm, GELU, dropout, residual sum and mask in one kernel.

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

from spanwise.runtime.shared_kernels import drop, dropout_seed, load_floats, random_numbers
from spanwise.runtime.sum_kernels import sum_columns

ROWS = 8  # cells per block
PROGRAMS = 528  # of the backward pass; each sums the gradients of the weights over its blocks


@triton.jit
def _block(inside, first, count, ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """The rows of a block, the positions of their values, and which values exist and are inside."""
    rows = first * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    exists = (rows < count)[:, None] & (columns < WIDTH)[None, :]
    is_inside = exists & (tl.load(inside + rows, mask=rows < count, other=0) != 0)[:, None]
    return rows, columns, rows[:, None] * WIDTH + columns[None, :], exists, is_inside


@triton.jit
def _normalize(total, is_inside, epsilon, WIDTH: tl.constexpr):
    """Centred and scaled rows; means and scales."""
    mean = tl.sum(total, 1) / WIDTH
    centred = tl.where(is_inside, total - mean[:, None], 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 1) / WIDTH + epsilon)
    return centred * scale[:, None], mean, scale


@triton.jit
def _normal_share(values):
    """The distribution function of the normal distribution; ``values`` times it is their GELU."""
    return 0.5 * (1.0 + tl.erf(values * 0.7071067811865476))


@triton.jit(do_not_specialize=["count"])
def _join(
    words, products, widths, weight, bias, inside, result, total_cells, means, scales, seed, count, epsilon, dropout,
    SIZE: tl.constexpr, LAST: tl.constexpr, CONTENT: tl.constexpr, SPANS: tl.constexpr, HAS_PRODUCT: tl.constexpr,
    ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Cells from words: first + last + width (+ product) (+ maximum), then norm, GELU and dropout."""
    rows, columns, here, exists, is_inside = _block(inside, tl.program_id(0), count, ROWS, WIDTH, BLOCK)
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
    normal, mean, scale = _normalize(total, is_inside, epsilon, WIDTH)
    factors = load_floats(weight + columns, columns < WIDTH)
    offsets = load_floats(bias + columns, columns < WIDTH)
    values = normal * factors[None, :] + offsets[None, :]
    values = tl.where(is_inside, values * _normal_share(values), 0.0)
    values = drop(values, random_numbers(tl.load(seed), here) >= dropout, dropout)
    tl.store(result + here, values, mask=exists)
    tl.store(total_cells + here, total, mask=exists)
    tl.store(means + rows, mean, mask=rows < count)
    tl.store(scales + rows, scale, mask=rows < count)


@triton.jit(do_not_specialize=["count"])
def _add(
    cells, neighbours, offset, weight, bias, inside, result, means, scales, count, epsilon,
    ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Cells plus GELU and norm of their neighbours, to which the bias of the convolution is added first."""
    rows, columns, here, exists, is_inside = _block(inside, tl.program_id(0), count, ROWS, WIDTH, BLOCK)
    total = load_floats(neighbours + here, is_inside)
    total = tl.where(is_inside, total + load_floats(offset + columns, columns < WIDTH)[None, :], 0.0)
    normal, mean, scale = _normalize(total, is_inside, epsilon, WIDTH)
    factors = load_floats(weight + columns, columns < WIDTH)
    offsets = load_floats(bias + columns, columns < WIDTH)
    values = normal * factors[None, :] + offsets[None, :]
    values = load_floats(cells + here, is_inside) + values * _normal_share(values)
    tl.store(result + here, tl.where(is_inside, values, 0.0), mask=exists)
    tl.store(means + rows, mean, mask=rows < count)
    tl.store(scales + rows, scale, mask=rows < count)


@triton.jit(do_not_specialize=["count", "blocks"])
def _norm_backward(
    total_cells, offset, weight, bias, inside, means, scales, gradient, cell_gradient, total_gradient, sums, seed, count,
    blocks, dropout, IS_SUM: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradients of ``_add`` (IS_SUM) or of the norm of ``_join``; sums for weight, bias and offset."""
    program = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    factors = load_floats(weight + columns, columns < WIDTH)[None, :]
    offsets = load_floats(bias + columns, columns < WIDTH)[None, :]
    weight_sum = tl.zeros([ROWS, BLOCK], tl.float32)
    bias_sum = tl.zeros([ROWS, BLOCK], tl.float32)
    offset_sum = tl.zeros([ROWS, BLOCK], tl.float32)
    for block in range(program, blocks, tl.num_programs(0)):
        rows, _, here, exists, is_inside = _block(inside, block, count, ROWS, WIDTH, BLOCK)
        total = load_floats(total_cells + here, is_inside)
        if IS_SUM:
            total += load_floats(offset + columns, columns < WIDTH)[None, :]
        mean = tl.load(means + rows, mask=rows < count, other=0.0)
        scale = tl.load(scales + rows, mask=rows < count, other=0.0)[:, None]
        normal = tl.where(is_inside, (total - mean[:, None]) * scale, 0.0)
        upper = load_floats(gradient + here, is_inside)
        if IS_SUM:
            tl.store(cell_gradient + here, upper, mask=exists)
        else:
            upper = drop(upper, random_numbers(tl.load(seed), here) >= dropout, dropout)
        values = normal * factors + offsets
        upper = upper * (_normal_share(values) + values * 0.3989422804014327 * tl.exp(-0.5 * values * values))
        weight_sum += upper * normal
        bias_sum += upper
        upper = upper * factors
        means_of_upper = tl.sum(upper, 1)[:, None] / WIDTH
        lower = (upper - means_of_upper - normal * (tl.sum(upper * normal, 1)[:, None] / WIDTH)) * scale
        lower = tl.where(is_inside, lower, 0.0)
        offset_sum += lower
        tl.store(total_gradient + here, lower, mask=exists)
    there = sums + program * (3 * WIDTH) + columns
    tl.store(there, tl.sum(weight_sum, 0), mask=columns < WIDTH)
    tl.store(there + WIDTH, tl.sum(bias_sum, 0), mask=columns < WIDTH)
    tl.store(there + 2 * WIDTH, tl.sum(offset_sum, 0), mask=columns < WIDTH)


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
        # Of equal words the last is the maximum.
        value = load_floats(here + CONTENT, is_column)
        is_largest = ends_here[:, None] & is_column[None, :]  # in the words from ``steps`` before to this one
        for step in range(1, SPANS):
            earlier = load_floats(here + CONTENT - step * SIZE, is_column & (step <= position))
            is_largest = is_largest & ((earlier <= value)[None, :] | (steps < step)[:, None])
        total = tl.zeros([STEPS, BLOCK], tl.float32)
        for after in range(0, SPANS):
            is_later = is_column & (position + after < length)
            later = load_floats(here + CONTENT + after * SIZE, is_later)
            is_largest = is_largest & is_later[None, :] & ((later < value) | (after == 0))[None, :]
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
        lower, _, sums = _differentiate(total, None, weight, bias, inside, means, scales, gradient, seed, dropout)
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


class ComparedCells(torch.autograd.Function):
    """Cells plus GELU and norm of ``neighbours``, the outputs of a convolution without its bias.

    Arguments: cells and neighbours [B, T, W, d]; the bias of the convolution; weight and bias of the norm; which cells are
    spans [B, T, W]; epsilon.
    """

    @staticmethod
    def forward(
        ctx: Any, cells: Tensor, neighbours: Tensor, offset: Tensor, weight: Tensor, bias: Tensor, inside: Tensor,
        epsilon: float,
    ) -> Tensor:  # fmt: skip
        cells, neighbours = cells.contiguous(), neighbours.contiguous()
        inside = inside.contiguous().view(torch.uint8)
        count, width = inside.numel(), len(weight)
        result = torch.empty_like(cells)
        means, scales = cells.new_empty(count), cells.new_empty(count)
        if count:
            _add[(triton.cdiv(count, ROWS),)](
                cells, neighbours, offset, weight, bias, inside, result, means, scales, count, epsilon,
                ROWS, width, triton.next_power_of_2(width),
            )  # fmt: skip
        ctx.save_for_backward(neighbours, offset, weight, bias, inside, means, scales)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        neighbours, offset, weight, bias, inside, means, scales = ctx.saved_tensors
        lower, cells, sums = _differentiate(neighbours, offset, weight, bias, inside, means, scales, gradient, inside, 0.0)
        return cells, lower, sums[2], sums[0], sums[1], None, None


def _differentiate(
    total: Tensor, offset: Tensor | None, weight: Tensor, bias: Tensor, inside: Tensor, means: Tensor, scales: Tensor,
    gradient: Tensor, seed: Tensor, dropout: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of the inputs of a norm, of the cells that are added to it, and of weight, bias and offset."""
    count, width = len(means), len(weight)
    blocks = triton.cdiv(count, ROWS)
    programs = max(1, min(PROGRAMS, blocks))
    lower = torch.empty_like(total)
    cells = lower if offset is None else torch.empty_like(total)
    sums = weight.new_empty(programs, 3 * width)
    _norm_backward[(programs,)](
        total, weight if offset is None else offset, weight, bias, inside, means, scales, gradient.contiguous(), cells, lower,
        sums, seed, count, blocks, dropout, offset is not None, ROWS, width, triton.next_power_of_2(width),
    )  # fmt: skip
    return lower, cells, sum_columns(sums).view(3, width)
