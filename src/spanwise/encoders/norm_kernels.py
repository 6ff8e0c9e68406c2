# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""Dropout, residual sum and layer norm in Triton: one kernel forward, one kernel and a sum backward."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from spanwise.runtime.shared_kernels import drop, dropout_seed, load_floats, random_numbers

PROGRAMS = 264  # of the backward pass; each sums the gradients of the weights over its rows


@triton.jit
def _sum(residual, branch, here, is_inside, row, columns, random, dropout, WIDTH: tl.constexpr, DROPS: tl.constexpr):
    """The residual sum of a row, and the factor of each value of the branch."""
    total = load_floats(residual + here, is_inside)
    part = load_floats(branch + here, is_inside)
    factor = tl.where(is_inside, 1.0, 0.0)
    if DROPS:
        factor = drop(factor, random_numbers(random, row * WIDTH + columns) > dropout, dropout)
    return total + part * factor, factor


@triton.jit
def _forward(
    residual, branch, weight, bias, result, means, scales, seed, epsilon, dropout,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    is_inside = columns < WIDTH
    here = row * WIDTH + columns
    total, _ = _sum(residual, branch, here, is_inside, row, columns, tl.load(seed), dropout, WIDTH, DROPS)
    mean = tl.sum(total, 0) / WIDTH
    centred = tl.where(is_inside, total - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / WIDTH + epsilon)
    factors = load_floats(weight + columns, is_inside)
    offsets = load_floats(bias + columns, is_inside)
    tl.store(result + here, centred * scale * factors + offsets, mask=is_inside)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)


@triton.jit(do_not_specialize=["count"])
def _backward(
    residual, branch, weight, means, scales, gradient, residual_gradient, branch_gradient, weight_gradients, seed, count,
    dropout, WIDTH: tl.constexpr, BLOCK: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    is_inside = columns < WIDTH
    factors = load_floats(weight + columns, is_inside)
    random = tl.load(seed)
    weight_sum = tl.zeros([BLOCK], tl.float32)
    bias_sum = tl.zeros([BLOCK], tl.float32)
    for row in range(program, count, tl.num_programs(0)):
        here = row * WIDTH + columns
        total, factor = _sum(residual, branch, here, is_inside, row, columns, random, dropout, WIDTH, DROPS)
        scale = tl.load(scales + row)
        normal = tl.where(is_inside, (total - tl.load(means + row)) * scale, 0.0)
        upper = load_floats(gradient + here, is_inside)
        weight_sum += upper * normal
        bias_sum += upper
        upper = upper * factors
        lower = (upper - tl.sum(upper, 0) / WIDTH - normal * (tl.sum(upper * normal, 0) / WIDTH)) * scale
        tl.store(residual_gradient + here, lower, mask=is_inside)
        tl.store(branch_gradient + here, lower * factor, mask=is_inside)
    there = program * (2 * WIDTH) + columns
    tl.store(weight_gradients + there, weight_sum, mask=is_inside)
    tl.store(weight_gradients + there + WIDTH, bias_sum, mask=is_inside)


class ResidualNorm(torch.autograd.Function):
    """Arguments: the residual and the branch [..., d], weight and bias of the norm, its epsilon, dropout of the branch."""

    @staticmethod
    def forward(
        ctx: Any, residual: Tensor, branch: Tensor, weight: Tensor, bias: Tensor, epsilon: float, dropout: float
    ) -> Tensor:
        residual, branch = residual.contiguous(), branch.contiguous()
        width = residual.shape[-1]
        count = residual.numel() // width
        seed = dropout_seed(dropout, residual.device)
        result = torch.empty_like(residual)
        means, scales = residual.new_empty(2, count, dtype=torch.float32)
        ctx.shape = (dropout, width, triton.next_power_of_2(width), dropout > 0)
        if count:
            _forward[(count,)](residual, branch, weight, bias, result, means, scales, seed, epsilon, *ctx.shape)
        ctx.save_for_backward(residual, branch, weight, means, scales, seed)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        residual, branch, weight, means, scales, seed = ctx.saved_tensors
        count, programs = len(means), min(PROGRAMS, max(1, len(means)))
        residual_gradient, branch_gradient = torch.empty_like(residual), torch.empty_like(branch)
        sums = weight.new_empty(programs, 2, len(weight), dtype=torch.float32)
        _backward[(programs,)](
            residual, branch, weight, means, scales, gradient.contiguous(), residual_gradient, branch_gradient, sums, seed,
            count, *ctx.shape,
        )  # fmt: skip
        weight_gradient, bias_gradient = sums.sum(0).to(weight.dtype)
        return residual_gradient, branch_gradient, weight_gradient, bias_gradient, None, None
