# mypy: ignore-errors
# ruff: noqa: N803  Triton writes constants in capitals
"""The sum over the rows of a matrix in Triton, which the gradients of biases and norms need.

A program owns a few columns and reads many rows at once, because a sum waits for memory only. Rows
are always added in the same order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from spanwise.runtime.shared_kernels import load_floats

ROWS, COLUMNS, WARPS = 1024, 16, 16  # of a block that a program reads at once
MAX_ROWS = 4096  # that a program reads one after the other; more are shared by several programs
SHARED_ROWS = 2048  # of each of these programs


@triton.jit(do_not_specialize=["count", "share"])
def _sum(matrix, sums, count, columns, share, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The sums of a share of the rows, in the row of ``sums`` with the program's second number."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    is_column = column < columns
    first = tl.program_id(1) * share
    last = tl.minimum(first + share, count)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(first, last, ROWS):
        row = start + tl.arange(0, ROWS)
        here = row.to(tl.int64)[:, None] * columns + column[None, :]  # a matrix may have more than 2^31 values
        total += load_floats(matrix + here, (row < last)[:, None] & is_column[None, :])
    tl.store(sums + tl.program_id(1) * columns + column, tl.sum(total, 0), mask=is_column)


def sum_columns(matrix: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The sum over the rows of a contiguous matrix [rows, columns], added in float32, in the type ``dtype``."""
    count = len(matrix)
    if count > MAX_ROWS:
        matrix = _sum_shares(matrix, SHARED_ROWS, torch.float32)
    return _sum_shares(matrix, max(1, len(matrix)), dtype)[0]


def _sum_shares(matrix: Tensor, share: int, dtype: torch.dtype) -> Tensor:
    """The sums of each ``share`` rows, [shares, columns]; at least one share."""
    count, columns = matrix.shape
    shares = max(1, triton.cdiv(count, share))
    sums = matrix.new_empty(shares, columns, dtype=dtype)
    if columns:
        grid = (triton.cdiv(columns, COLUMNS), shares)
        _sum[grid](matrix, sums, count, columns, share, ROWS, COLUMNS, num_warps=WARPS, num_stages=1)
    return sums
