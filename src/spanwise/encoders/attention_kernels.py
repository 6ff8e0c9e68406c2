# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""Attention of short texts in Triton: one program per text and head, one kernel forward and one backward.

Queries, keys and values are one tensor, the result of one product. Weights of attention are computed
again in the backward pass and never stored.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from spanwise.runtime.shared_kernels import drop, dropout_seed, head_offsets, load_floats, product_precision, random_numbers


@triton.jit
def _load_projected(projected, here, is_inside, WIDTH: tl.constexpr):
    """Queries, keys and values of a text, which are next to each other in its rows."""
    query = load_floats(projected + here, is_inside[:, None])
    key = load_floats(projected + here + WIDTH, is_inside[:, None])
    value = load_floats(projected + here + 2 * WIDTH, is_inside[:, None])
    return query, key, value


@triton.jit
def _weights(query, key, is_key, scale, PRECISION: tl.constexpr):
    """The softmax of the scores of all keys for each query."""
    scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * scale
    scores = tl.where(is_key[None, :], scores, -1e30)  # finite: a text without keys has no NaN
    powers = tl.exp(scores - tl.max(scores, 1)[:, None])
    return powers / tl.sum(powers, 1)[:, None]


@triton.jit
def _draw_kept(seed, dropout, HEADS: tl.constexpr, BLOCK: tl.constexpr):
    """Which weights dropout keeps, [BLOCK, BLOCK]; the same in both passes."""
    positions = tl.arange(0, BLOCK)
    program = tl.program_id(0) * HEADS + tl.program_id(1)
    pairs = (program * BLOCK + positions[:, None]) * BLOCK + positions[None, :]
    return random_numbers(tl.load(seed), pairs) >= dropout


@triton.jit(do_not_specialize=["length"])
def _forward(
    projected, mask, result, seed, length, scale, dropout,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    positions = tl.arange(0, BLOCK)
    is_inside = positions < length
    rows = tl.program_id(0) * length + positions
    here = head_offsets(rows, 3 * HEADS * SIZE, SIZE)
    there = head_offsets(rows, HEADS * SIZE, SIZE)
    query, key, value = _load_projected(projected, here, is_inside, HEADS * SIZE)
    is_key = tl.load(mask + rows, mask=is_inside, other=0) != 0
    weights = _weights(query, key, is_key, scale, PRECISION)
    weights = drop(weights, _draw_kept(seed, dropout, HEADS, BLOCK), dropout)
    mixed = tl.dot(weights, value, input_precision=PRECISION)
    tl.store(result + there, mixed, mask=is_inside[:, None])


@triton.jit(do_not_specialize=["length"])
def _backward(
    projected, mask, gradient, lower, seed, length, scale, dropout,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    positions = tl.arange(0, BLOCK)
    is_inside = positions < length
    rows = tl.program_id(0) * length + positions
    here = head_offsets(rows, 3 * HEADS * SIZE, SIZE)
    there = head_offsets(rows, HEADS * SIZE, SIZE)
    query, key, value = _load_projected(projected, here, is_inside, HEADS * SIZE)
    upper = load_floats(gradient + there, is_inside[:, None])
    is_key = tl.load(mask + rows, mask=is_inside, other=0) != 0
    weights = _weights(query, key, is_key, scale, PRECISION)
    changes = tl.dot(upper, tl.trans(value), input_precision=PRECISION)
    is_kept = _draw_kept(seed, dropout, HEADS, BLOCK)
    kept_weights = drop(weights, is_kept, dropout)
    changes = drop(changes, is_kept, dropout)
    changes = weights * (changes - tl.sum(weights * changes, 1)[:, None]) * scale
    lower_query = tl.dot(changes, key, input_precision=PRECISION)
    lower_key = tl.dot(tl.trans(changes), query, input_precision=PRECISION)
    lower_value = tl.dot(tl.trans(kept_weights), upper, input_precision=PRECISION)
    tl.store(lower + here, lower_query, mask=is_inside[:, None])
    tl.store(lower + here + HEADS * SIZE, lower_key, mask=is_inside[:, None])
    tl.store(lower + here + 2 * HEADS * SIZE, lower_value, mask=is_inside[:, None])


class TextAttention(torch.autograd.Function):
    """Arguments: queries, keys and values as one tensor [B, T, 3 d], a mask of keys [B, T], the number of heads, dropout."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, mask: Tensor, heads: int, dropout: float) -> Tensor:
        projected, mask = projected.contiguous(), mask.to(torch.int8)
        batch, length, width = projected.shape
        size, block = width // (3 * heads), max(16, triton.next_power_of_2(length))
        seed = dropout_seed(dropout, projected.device)
        ctx.shape = (length, size**-0.5, float(dropout), heads, size, block, product_precision())
        ctx.warps = 8 if block > 64 else 4
        ctx.save_for_backward(projected, mask, seed)
        result = projected.new_empty(batch, length, width // 3)
        _forward[(batch, heads)](projected, mask, result, seed, *ctx.shape, num_warps=ctx.warps)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        projected, mask, seed = ctx.saved_tensors
        lower = torch.empty_like(projected)
        grid = (len(projected), ctx.shape[3])
        _backward[grid](projected, mask, gradient.contiguous(), lower, seed, *ctx.shape, num_warps=ctx.warps)
        return lower, None, None, None
