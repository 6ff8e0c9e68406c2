"""Sums over the rows of a matrix, also by kernels.

Without a GPU, Triton interprets them: ``TRITON_INTERPRET=1 python -m pytest tests/runtime/test_column_sums.py``.
"""

from __future__ import annotations

import math

import pytest
import torch
from kernel_device import DEVICE, needs_kernels

from spanwise.runtime.column_sums import sum_rows


def test_sums_of_rows() -> None:
    matrix = torch.randn(192, 5)
    torch.testing.assert_close(sum_rows(matrix), matrix.sum(0), rtol=1e-5, atol=1e-5)
    total = sum_rows(torch.ones(300, 40, 1, dtype=torch.bfloat16))  # added in bfloat16, it would stay below 300
    assert total.dtype == torch.bfloat16
    assert total.item() == pytest.approx(12000, rel=0.01)


@pytest.mark.parametrize("shape", [(4,), (0, 4), (3, 0, 4), (2, 3, 5, 4)])
def test_sums_have_one_value_per_column(shape: tuple[int, ...]) -> None:
    assert sum_rows(torch.ones(shape)).tolist() == [math.prod(shape) / 4] * 4


@needs_kernels
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1), (0, 5), (5, 0), (1024, 16), (1025, 17), (3000, 40), (4097, 24), (6500, 8)])
def test_kernels_sum_all_rows(shape: tuple[int, int], dtype: torch.dtype) -> None:
    from spanwise.runtime.sum_kernels import sum_columns

    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(DEVICE, dtype)
    expected = matrix.double().sum(0)
    for kind, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 1e-2)):
        total = sum_columns(matrix, kind)
        assert total.dtype == kind
        torch.testing.assert_close(total.double(), expected, rtol=tolerance, atol=tolerance * 50)
    assert torch.equal(sum_columns(matrix), sum_columns(matrix))
