"""Sums over the rows of a matrix: one kernel in training on a GPU, where kernels work."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from spanwise.runtime.kernel_choice import example_values, kernels_agree, uses_kernels

GROUPS = (64, 32)  # rows that PyTorch sums first
KERNEL_TYPES = (torch.float32, torch.bfloat16, torch.float16)


def sum_rows(matrix: Tensor) -> Tensor:
    """The sum over all dimensions but the last, added in float32, in the type of the matrix.

    PyTorch computes such a sum with blocks that wait for each other. Without kernels, two sums, of
    groups of rows and of groups, take a third of that.

    >>> sum_rows(torch.ones(2, 64, 3))
    tensor([128., 128., 128.])
    """
    dtype = matrix.dtype
    if matrix.is_cuda and dtype in KERNEL_TYPES and uses_kernels() and _works(matrix.device, dtype):
        return sum_with_kernels(matrix.reshape(-1, matrix.shape[-1]).contiguous(), dtype)
    if matrix.ndim < 3:
        matrix = matrix.reshape(-1, matrix.shape[-1])
        group = next((group for group in GROUPS if len(matrix) % group == 0), 1)
        matrix = matrix.view(-1, group, matrix.shape[1])
    return matrix.flatten(0, -3).sum(1, dtype=torch.float32).sum(0).to(dtype)


def sum_with_kernels(matrix: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The sum over the rows of a contiguous matrix on a GPU, in the type ``dtype``."""
    from spanwise.runtime.sum_kernels import sum_columns

    return sum_columns(matrix, dtype)


@cache
def _works(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether kernels compute sums of this type. Block, type and divisibility by 16 decide what Triton compiles."""
    matrix = example_values(1500, 48, device=device, dtype=dtype)
    return kernels_agree(
        "sum", lambda rows: sum_with_kernels(rows.detach(), dtype), lambda rows: rows.detach().sum(0), [matrix]
    )  # fmt: skip
