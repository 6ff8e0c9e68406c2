"""The loss of the cells of a grid by kernels, compared with PyTorch.

Without a GPU, Triton interprets them: ``TRITON_INTERPRET=1 python -m pytest tests/heads/test_cell_loss_kernels.py``.
"""

from __future__ import annotations

import warnings

import pytest
import torch
from kernel_device import DEVICE, needs_kernels
from torch import Tensor

from spanwise.core.errors import SpanwiseWarning
from spanwise.heads import cell_loss
from spanwise.heads.cell_loss import can_use_loss_kernels, cell_losses, sums_with_kernels
from spanwise.runtime import kernel_choice


def make_targets(classes: int, *, rows: int) -> dict[str, Tensor]:
    """Gold rows of several types, followed by two rows with a mass of 0, as in batches of fixed shapes."""
    values = [(0, 0, 2, 0, 0.4), (0, 0, 2, classes - 2, 0.6), (0, 4, 5, 0, 1.0), (2, 1, 3, 0, 0.975), (2, 0, 3, 0, 0.025)]
    values = values[:rows] + [(0, 0, 1, 0, 0.0)] * 2
    names = ("sentence", "start", "end", "label", "mass")
    return {name: torch.tensor(column).to(DEVICE) for name, column in zip(names, zip(*values, strict=True), strict=True)}


@needs_kernels
@pytest.mark.parametrize("rows", [0, 5])
@pytest.mark.parametrize(("width", "classes"), [(3, 3), (4, 6), (3, 130)])
def test_kernels_equal_the_cross_entropy(width: int, classes: int, rows: int) -> None:
    generator = torch.Generator().manual_seed(1)
    logits = (3 * torch.randn(3, 9, width, classes, generator=generator)).to(DEVICE).requires_grad_()
    lengths = torch.tensor([9, 0, 5]).view(-1, 1, 1)
    inside = (torch.arange(9).view(-1, 1) + torch.arange(width) < lengths).to(DEVICE)
    targets = make_targets(classes, rows=rows)
    expected = cell_losses(logits, inside, targets).masked_fill(~inside, 0.0).flatten(1).sum(1)
    actual = sums_with_kernels(logits, inside, targets)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    assert actual[1] == 0
    upper = torch.tensor([0.5, 2.0, -1.0], device=DEVICE)
    gradient, other = (torch.autograd.grad(sums, logits, upper)[0] for sums in (actual, expected))
    torch.testing.assert_close(gradient, other, rtol=1e-5, atol=1e-6)


@needs_kernels
def test_kernels_agree_before_they_are_used() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cell_loss._works(torch.device(DEVICE), 4, 5)
        assert cell_loss._works(torch.device(DEVICE), 1, 2)


@needs_kernels
def test_wrong_kernels_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_choice, "_reported", set())  # a reason is reported once
    monkeypatch.setattr(cell_loss, "sums_with_kernels", lambda *arguments: 1.1 * sums_with_kernels(*arguments))
    with pytest.warns(SpanwiseWarning, match="training without the loss kernels"):
        assert not cell_loss._works(torch.device(DEVICE), 4, 7)


def test_kernels_are_for_training_on_a_gpu() -> None:
    assert not can_use_loss_kernels(torch.zeros(1, 2, 3, 4, requires_grad=True))
