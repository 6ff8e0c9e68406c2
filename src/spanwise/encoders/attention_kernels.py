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


@triton.jit
def random_numbers(seed, number):
    """A number from 0 to 1 for each ``number``: the finalizer of MurmurHash3, ten times as fast as ``tl.rand``."""
    bits = number.to(tl.uint32) * 0x9E3779B1 + seed.to(tl.uint32)
    bits = (bits ^ (bits >> 16)) * 0x85EBCA6B
    bits = (bits ^ (bits >> 13)) * 0xC2B2AE35
    bits = bits ^ (bits >> 16)
    return (bits >> 8).to(tl.float32) * (1.0 / 16777216.0)


@triton.jit
def _weights(query, key, is_key, scale, PRECISION: tl.constexpr):
    """The softmax of the scores of all keys for each query."""
    scores = tl.dot(query, tl.trans(key), input_precision=PRECISION) * scale
    scores = tl.where(is_key[None, :], scores, float("-inf"))
    powers = tl.exp(scores - tl.max(scores, 1)[:, None])
    return powers / tl.sum(powers, 1)[:, None]


@triton.jit(do_not_specialize=["length"])
def _forward(
    projected, mask, result, seed, length, scale, dropout,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, DROPS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    text = tl.program_id(0)
    head = tl.program_id(1)
    positions = tl.arange(0, BLOCK)
    is_inside = positions < length
    columns = head * SIZE + tl.arange(0, SIZE)
    rows = text * length + positions
    here = rows[:, None] * (3 * HEADS * SIZE) + columns[None, :]
    query = tl.load(projected + here, mask=is_inside[:, None], other=0.0).to(tl.float32)
    key = tl.load(projected + here + HEADS * SIZE, mask=is_inside[:, None], other=0.0).to(tl.float32)
    value = tl.load(projected + here + 2 * HEADS * SIZE, mask=is_inside[:, None], other=0.0).to(tl.float32)
    is_key = tl.load(mask + rows, mask=is_inside, other=0) != 0
    weights = _weights(query, key, is_key, scale, PRECISION)
    if DROPS:
        pairs = ((text * HEADS + head) * BLOCK + positions[:, None]) * BLOCK + positions[None, :]
        weights = tl.where(random_numbers(tl.load(seed), pairs) > dropout, weights / (1.0 - dropout), 0.0)
    mixed = tl.dot(weights, value, input_precision=PRECISION)
    tl.store(result + rows[:, None] * (HEADS * SIZE) + columns[None, :], mixed, mask=is_inside[:, None])


@triton.jit(do_not_specialize=["length"])
def _backward(
    projected, mask, gradient, lower, seed, length, scale, dropout,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr, DROPS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    text = tl.program_id(0)
    head = tl.program_id(1)
    positions = tl.arange(0, BLOCK)
    is_inside = positions < length
    columns = head * SIZE + tl.arange(0, SIZE)
    rows = text * length + positions
    here = rows[:, None] * (3 * HEADS * SIZE) + columns[None, :]
    query = tl.load(projected + here, mask=is_inside[:, None], other=0.0).to(tl.float32)
    key = tl.load(projected + here + HEADS * SIZE, mask=is_inside[:, None], other=0.0).to(tl.float32)
    value = tl.load(projected + here + 2 * HEADS * SIZE, mask=is_inside[:, None], other=0.0).to(tl.float32)
    upper = tl.load(gradient + rows[:, None] * (HEADS * SIZE) + columns[None, :], mask=is_inside[:, None], other=0.0)
    upper = upper.to(tl.float32)
    is_key = tl.load(mask + rows, mask=is_inside, other=0) != 0
    weights = _weights(query, key, is_key, scale, PRECISION)
    changes = tl.dot(upper, tl.trans(value), input_precision=PRECISION)
    kept = weights
    if DROPS:
        pairs = ((text * HEADS + head) * BLOCK + positions[:, None]) * BLOCK + positions[None, :]
        is_kept = random_numbers(tl.load(seed), pairs) > dropout
        kept = tl.where(is_kept, weights / (1.0 - dropout), 0.0)
        changes = tl.where(is_kept, changes / (1.0 - dropout), 0.0)
    changes = weights * (changes - tl.sum(weights * changes, 1)[:, None]) * scale
    lower_query = tl.dot(changes, key, input_precision=PRECISION)
    lower_key = tl.dot(tl.trans(changes), query, input_precision=PRECISION)
    lower_value = tl.dot(tl.trans(kept), upper, input_precision=PRECISION)
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
        seed = torch.randint(1 << 30, (1,), device=projected.device) if dropout else mask.new_zeros(1, dtype=torch.int64)
        precision = "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"
        ctx.shape = (length, size**-0.5, dropout, heads, size, block, dropout > 0, precision)
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
