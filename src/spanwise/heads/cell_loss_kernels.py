# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""The cross-entropy of the cells of a grid in Triton: one kernel for the targets and one for losses and gradients."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from spanwise.runtime.shared_kernels import load_floats

BLOCK_VALUES = 1024  # logits that a program reads at once
TARGET_ROWS = 128  # rows of gold per program


# Tensors of a batch have any alignment to eight bytes: specialised kernels would be compiled many times.
@triton.jit(
    do_not_specialize=["count", "length"], do_not_specialize_on_alignment=["sentence", "start", "end", "label", "mass"]
)  # fmt: skip
def _mark(
    sentence, start, end, label, mass, target, count, length, SPANS: tl.constexpr, TYPES: tl.constexpr, ROWS: tl.constexpr
):
    """Add the masses of gold rows to the cells. A cell and type has one row, so the order does not matter."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    is_row = rows < count
    first = tl.load(start + rows, mask=is_row, other=0)
    width = tl.load(end + rows, mask=is_row, other=1) - first - 1
    cell = (tl.load(sentence + rows, mask=is_row, other=0) * length + first) * SPANS + width
    here = target + cell * TYPES + tl.load(label + rows, mask=is_row, other=0)
    tl.atomic_add(here, load_floats(mass + rows, is_row), mask=is_row)


@triton.jit(do_not_specialize=["count"])
def _losses(
    logits, target, inside, sums, gradient, count, TYPES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The sum of the losses of a block of a sentence's cells, and the gradient of each logit. The last class is NONE."""
    sentence, block = tl.program_id(0), tl.program_id(1)
    places = block * ROWS + tl.arange(0, ROWS)
    rows = sentence * count + places
    columns = tl.arange(0, BLOCK)
    is_inside = (tl.load(inside + rows, mask=places < count, other=0) != 0)[:, None]
    exists = (places < count)[:, None] & (columns <= TYPES)[None, :]
    is_read = is_inside & (columns <= TYPES)[None, :]
    here = rows[:, None] * (TYPES + 1) + columns[None, :]
    scores = load_floats(logits + here, is_read)
    largest = tl.max(tl.where(is_read, scores, float("-inf")), 1)[:, None]
    largest = tl.where(is_inside, largest, 0.0)
    powers = tl.where(is_read, tl.exp(scores - largest), 0.0)
    total = tl.sum(powers, 1)[:, None]
    total = tl.where(is_inside, total, 1.0)
    gold = load_floats(target + rows[:, None] * TYPES + columns[None, :], is_inside & (columns < TYPES)[None, :])
    none = 1.0 - tl.sum(gold, 1)[:, None]  # the remaining probability
    gold = tl.where(is_read & (columns == TYPES)[None, :], none, gold)
    values = tl.where(is_read, gold * (largest + tl.log(total) - scores), 0.0)
    tl.store(sums + sentence * tl.num_programs(1) + block, tl.sum(tl.sum(values, 1), 0))
    tl.store(gradient + here, tl.where(is_read, powers / total - gold, 0.0), mask=exists)


class CellLosses(torch.autograd.Function):
    """The sum of the cross-entropies of each sentence's cells, [B].

    Arguments: logits [B, T, W, types + 1], with NONE last; which cells are spans [B, T, W]; sentence, start, end,
    label and mass of the gold rows.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, inside: Tensor, sentence: Tensor, start: Tensor, end: Tensor, label: Tensor, mass: Tensor
    ) -> Tensor:
        logits, inside = logits.contiguous(), inside.contiguous().view(torch.uint8)
        (batch, length, spans), types = inside.shape, logits.shape[-1] - 1
        target = torch.zeros(*inside.shape, types, device=logits.device)
        columns = [column.contiguous() for column in (sentence, start, end, label, mass)]
        if count := len(mass):
            _mark[(triton.cdiv(count, TARGET_ROWS),)](*columns, target, count, length, spans, types, TARGET_ROWS)
        block = triton.next_power_of_2(types + 1)
        rows = max(1, BLOCK_VALUES // block)
        blocks = triton.cdiv(length * spans, rows)
        sums, gradient = logits.new_empty(batch, blocks), torch.empty_like(logits)
        if sums.numel():
            _losses[(batch, blocks)](logits, target, inside, sums, gradient, length * spans, types, rows, block)
        ctx.save_for_backward(gradient)
        return sums.sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upper: Tensor) -> tuple[Any, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * upper.view(-1, 1, 1, 1), *[None] * 6
