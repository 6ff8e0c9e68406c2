# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""Bias, dropout, residual sum and layer norm in Triton: one kernel forward, one kernel and a sum backward.

The bias belongs to the linear layer before. The backward pass reads all rows anyway, so the gradient of
the bias needs no separate kernel.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from spanwise.runtime.shared_kernels import drop, dropout_seed, load_floats, norm_gradient, normalize, random_numbers
from spanwise.runtime.sum_kernels import sum_columns

PROGRAMS = 396  # of the backward pass, three per multiprocessor of an H200; each sums the gradients of vectors over its rows
BLOCK_VALUES = 2048  # that a program reads at once
MAX_ROWS = 8  # of a block


@triton.jit
def _load_vector(values, columns, is_column):
    """The values of all columns, [1, BLOCK]."""
    return load_floats(values + columns, is_column)[None, :]


@triton.jit
def _sum(residual, branch, bias, seed, here, is_inside, dropout):
    """The residual sum, and the factor of each value of the branch."""
    factor = drop(tl.where(is_inside, 1.0, 0.0), random_numbers(tl.load(seed), here) >= dropout, dropout)
    part = load_floats(branch + here, is_inside) + bias
    return load_floats(residual + here, is_inside) + part * factor, factor


@triton.jit(do_not_specialize=["count"])
def _forward(
    residual, branch, branch_bias, weight, bias, result, means, scales, seed, count, epsilon, dropout,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    is_row, is_column = rows < count, columns < WIDTH
    is_inside = is_row[:, None] & is_column[None, :]
    here = rows[:, None] * WIDTH + columns[None, :]
    branch_bias = _load_vector(branch_bias, columns, is_column)
    total, _ = _sum(residual, branch, branch_bias, seed, here, is_inside, dropout)
    normal, mean, scale = normalize(total, is_inside, epsilon, WIDTH)
    values = normal * _load_vector(weight, columns, is_column) + _load_vector(bias, columns, is_column)
    tl.store(result + here, values, mask=is_inside)
    tl.store(means + rows, mean, mask=is_row)
    tl.store(scales + rows, scale, mask=is_row)


@triton.jit(do_not_specialize=["count"])
def _backward(
    residual, branch, branch_bias, weight, means, scales, gradient, residual_gradient, branch_gradient, sums, seed, count,
    dropout, WIDTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    is_column = columns < WIDTH
    factors = _load_vector(weight, columns, is_column)
    branch_bias = _load_vector(branch_bias, columns, is_column)
    weight_sum = tl.zeros([ROWS, BLOCK], tl.float32)
    bias_sum = tl.zeros([ROWS, BLOCK], tl.float32)
    branch_sum = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(program * ROWS, count, tl.num_programs(0) * ROWS):
        rows = first + tl.arange(0, ROWS)
        is_row = rows < count
        is_inside = is_row[:, None] & is_column[None, :]
        here = rows[:, None] * WIDTH + columns[None, :]
        upper = load_floats(gradient + here, is_inside)
        total, factor = _sum(residual, branch, branch_bias, seed, here, is_inside, dropout)
        mean = tl.load(means + rows, mask=is_row, other=0.0)[:, None]
        scale = tl.load(scales + rows, mask=is_row, other=0.0)[:, None]
        normal = tl.where(is_inside, (total - mean) * scale, 0.0)
        weight_sum += upper * normal
        bias_sum += upper
        upper = upper * factors
        lower = tl.where(is_inside, norm_gradient(upper, normal, scale, WIDTH), 0.0)
        branch_sum += lower * factor
        tl.store(residual_gradient + here, lower, mask=is_inside)
        tl.store(branch_gradient + here, lower * factor, mask=is_inside)
    there = sums + program * (3 * WIDTH) + columns
    tl.store(there, tl.sum(weight_sum, 0), mask=is_column)
    tl.store(there + WIDTH, tl.sum(bias_sum, 0), mask=is_column)
    tl.store(there + 2 * WIDTH, tl.sum(branch_sum, 0), mask=is_column)


class ResidualNorm(torch.autograd.Function):
    """Arguments: the residual and the branch [..., d], the branch's bias, weight and bias of the norm, its epsilon, dropout.

    Dropout applies to the branch with its bias.
    """

    @staticmethod
    def forward(
        ctx: Any, residual: Tensor, branch: Tensor, branch_bias: Tensor, weight: Tensor, bias: Tensor, epsilon: float,
        dropout: float,
    ) -> Tensor:  # fmt: skip
        residual, branch = residual.contiguous(), branch.contiguous()
        width = residual.shape[-1]
        count, block = residual.numel() // width, triton.next_power_of_2(width)
        ctx.shape = (width, block, max(1, min(MAX_ROWS, BLOCK_VALUES // block)))
        ctx.dropout, seed = float(dropout), dropout_seed(dropout, residual.device)
        result = torch.empty_like(residual)
        # Two tensors: halves of one would not always have the alignment for which the kernel is compiled.
        means, scales = (residual.new_empty(count, dtype=torch.float32) for _ in range(2))
        if count:
            _forward[(triton.cdiv(count, ctx.shape[2]),)](
                residual, branch, branch_bias, weight, bias, result, means, scales, seed, count, epsilon, ctx.dropout,
                *ctx.shape,
            )  # fmt: skip
        ctx.save_for_backward(residual, branch, branch_bias, weight, means, scales, seed)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        residual, branch, branch_bias, weight, means, scales, seed = ctx.saved_tensors
        count, width, rows = len(means), ctx.shape[0], ctx.shape[2]
        programs = max(1, min(PROGRAMS, triton.cdiv(count, rows)))
        residual_gradient, branch_gradient = torch.empty_like(residual), torch.empty_like(branch)
        sums = weight.new_empty(programs, 3 * width, dtype=torch.float32)
        _backward[(programs,)](
            residual, branch, branch_bias, weight, means, scales, gradient.contiguous(), residual_gradient, branch_gradient,
            sums, seed, count, ctx.dropout, *ctx.shape,
        )  # fmt: skip
        gradients = sum_columns(sums, weight.dtype).view(3, width).unbind()
        return residual_gradient, branch_gradient, gradients[2].to(branch_bias.dtype), *gradients[:2], None, None
