# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""The cells of a grid after a convolution in Triton: layer norm, GELU, residual sum and mask in one kernel.

``cell_kernels`` uses the same norm and its gradients.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from spanwise.runtime.shared_kernels import drop, load_floats, norm_gradient, normalize, random_numbers
from spanwise.runtime.sum_kernels import sum_columns

ROWS = 8  # cells per block
PROGRAMS = 528  # of the backward pass; each sums the gradients of the weights over its blocks


@triton.jit
def load_block(inside, first, count, ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """The rows of a block, the positions of their values, and which values exist and are inside."""
    rows = first * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    exists = (rows < count)[:, None] & (columns < WIDTH)[None, :]
    is_inside = exists & (tl.load(inside + rows, mask=rows < count, other=0) != 0)[:, None]
    return rows, columns, rows[:, None] * WIDTH + columns[None, :], exists, is_inside


@triton.jit
def normal_cdf(values):
    """The cumulative distribution function of the normal distribution; ``values`` times it is their GELU."""
    return 0.5 * (1.0 + tl.erf(values * 0.7071067811865476))


@triton.jit(do_not_specialize=["count"])
def _add(
    cells, neighbours, offset, weight, bias, inside, result, means, scales, count, epsilon,
    ROWS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Cells plus GELU and norm of their neighbours, to which the bias of the convolution is added first."""
    rows, columns, here, exists, is_inside = load_block(inside, tl.program_id(0), count, ROWS, WIDTH, BLOCK)
    total = load_floats(neighbours + here, is_inside)
    total = tl.where(is_inside, total + load_floats(offset + columns, columns < WIDTH)[None, :], 0.0)
    normal, mean, scale = normalize(total, is_inside, epsilon, WIDTH)
    factors = load_floats(weight + columns, columns < WIDTH)
    offsets = load_floats(bias + columns, columns < WIDTH)
    values = normal * factors[None, :] + offsets[None, :]
    values = load_floats(cells + here, is_inside) + values * normal_cdf(values)
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
        rows, _, here, exists, is_inside = load_block(inside, block, count, ROWS, WIDTH, BLOCK)
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
        upper = upper * (normal_cdf(values) + values * 0.3989422804014327 * tl.exp(-0.5 * values * values))
        weight_sum += upper * normal
        bias_sum += upper
        upper = upper * factors
        lower = tl.where(is_inside, norm_gradient(upper, normal, scale, WIDTH), 0.0)
        offset_sum += lower
        tl.store(total_gradient + here, lower, mask=exists)
    there = sums + program * (3 * WIDTH) + columns
    tl.store(there, tl.sum(weight_sum, 0), mask=columns < WIDTH)
    tl.store(there + WIDTH, tl.sum(bias_sum, 0), mask=columns < WIDTH)
    tl.store(there + 2 * WIDTH, tl.sum(offset_sum, 0), mask=columns < WIDTH)


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
        lower, cells, sums = differentiate_norm(neighbours, offset, weight, bias, inside, means, scales, gradient, inside, 0.0)
        return cells, lower, sums[2], sums[0], sums[1], None, None


def differentiate_norm(
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
