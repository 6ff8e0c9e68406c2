"""The cells of a grid by kernels, compared with PyTorch.

Without a GPU, Triton interprets them: ``TRITON_INTERPRET=1 python -m pytest tests/heads/test_cell_kernels.py``.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from kernel_device import DEVICE, needs_kernels
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseWarning
from spanwise.encoders.base import TokenStates
from spanwise.heads import fast_cells
from spanwise.heads.base import Labels
from spanwise.heads.fast_cells import can_use_cell_kernels, compared_cells, joined_cells
from spanwise.heads.grid import Grid, GridSettings
from spanwise.runtime import kernel_choice

VARIANTS: list[dict[str, Any]] = [
    {},
    {"depth": 0},
    {"depth": 1, "kernel": 5},
    {"rank": 0},
    {"rank": 20},
    {"pooling": False},
    {"max_width": 1},
    {"max_width": 12},  # longer than the sentences
]


def make(**options: Any) -> Grid:
    torch.manual_seed(4)
    settings = {"channels": 12, "rank": 8, "max_width": 5, "dropout": 0.0, "hidden_dropout": 0.0, "decoding": "nested"}
    head = Grid(16, Labels(("A", "B")), GridSettings(**{**settings, **options}))
    with torch.no_grad():
        for norm in head.norms:
            norm.weight.normal_(1.0, 0.5)
            norm.bias.normal_()
    return head.to(DEVICE).train()


def make_states(*lengths: int) -> TokenStates:
    words = torch.randn(len(lengths), max(lengths), 16, generator=torch.Generator().manual_seed(5)).to(DEVICE)
    words[0, 1:4] = words[0, 1]  # of equal words, one is the maximum
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).to(DEVICE)
    return TokenStates(words.requires_grad_(), torch.zeros(len(lengths), 16), mask)


def gradients(head: Grid, states: TokenStates, cells: Tensor) -> dict[str, Tensor]:
    upper = torch.randn(cells.shape, generator=torch.Generator().manual_seed(6)).to(DEVICE)
    named = {"words": states.words} | {name: p for name, p in head.named_parameters() if not name.startswith("classifier")}
    results = torch.autograd.grad(cells, list(named.values()), upper)
    return dict(zip(named, results, strict=True))


@needs_kernels
@pytest.mark.parametrize("options", VARIANTS)
def test_cells_and_gradients_equal_pytorch(options: dict[str, Any]) -> None:
    head, states = make(**options), make_states(9, 1, 6)
    expected, inside = pytorch_cells(head, states)
    actual = head.cells_with_kernels(states.words, inside)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
    expected_gradients = gradients(head, states, expected)
    for name, gradient in gradients(head, states, actual).items():
        torch.testing.assert_close(gradient, expected_gradients[name], rtol=1e-4, atol=1e-4, msg=name)


def pytorch_cells(head: Grid, states: TokenStates) -> tuple[Tensor, Tensor]:
    """The cells without kernels, which only training uses."""
    cells, inside = head.eval().cells(states)
    head.train()
    return cells, inside


@needs_kernels
def test_dropout_has_the_gradients_of_its_mask() -> None:
    words = torch.randn(3, 9, 3 * 12, generator=torch.Generator().manual_seed(1)).to(DEVICE).requires_grad_()
    widths, norm = torch.zeros(4, 12, device=DEVICE), nn.LayerNorm(12, device=DEVICE)
    inside = torch.ones(3, 9, 4, dtype=torch.bool, device=DEVICE)
    inside[:, 6:] = False
    plain = joined_cells(words, None, widths, norm, inside, 0.0, has_content=True)
    dropped = joined_cells(words, None, widths, norm, inside, 0.4, has_content=True)
    is_kept = dropped != 0
    assert is_kept[inside].float().mean().item() == pytest.approx(0.6, abs=0.05)
    expected = plain * is_kept / 0.6
    torch.testing.assert_close(dropped, expected)
    upper = torch.randn(plain.shape, generator=torch.Generator().manual_seed(2)).to(DEVICE)
    parameters = (words, norm.weight, norm.bias)
    for actual, other in zip(*(torch.autograd.grad(v, parameters, upper) for v in (dropped, expected)), strict=True):
        torch.testing.assert_close(actual, other, rtol=1e-4, atol=1e-4)


@needs_kernels
def test_many_cells_are_summed_in_several_blocks() -> None:
    generator = torch.Generator().manual_seed(1)
    cells, upper = (torch.randn(4, 30, 3, 8, generator=generator).to(DEVICE) for _ in range(2))
    inside = torch.rand(4, 30, 3, generator=generator).to(DEVICE) < 0.7
    convolution, norm = nn.Conv2d(8, 8, 3, padding=1).to(DEVICE), nn.LayerNorm(8).to(DEVICE)
    cells.requires_grad_()
    neighbours = convolution(cells.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    expected = (cells + nn.functional.gelu(norm(neighbours))) * inside.unsqueeze(-1)
    actual = compared_cells(cells, convolution, norm, inside)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    parameters = (cells, convolution.weight, convolution.bias, norm.weight, norm.bias)
    results = (torch.autograd.grad(values, parameters, upper) for values in (actual, expected))
    for gradient, other in zip(*results, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-3, atol=1e-3)


def test_kernels_are_for_training_in_float32_on_a_gpu() -> None:
    assert not can_use_cell_kernels(torch.zeros(1, 2, 8, requires_grad=True), 3, 8, 8)
    if torch.cuda.is_available():
        assert not can_use_cell_kernels(torch.zeros(1, 2, 8, device="cuda", dtype=torch.bfloat16), 3, 8, 8)
        with torch.no_grad():
            assert not can_use_cell_kernels(torch.zeros(1, 2, 8, device="cuda"), 3, 8, 8)


@needs_kernels
@pytest.mark.parametrize("rank", [0, 4])
def test_kernels_agree_before_they_are_used(rank: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fast_cells._works(torch.device(DEVICE), 4, 8, rank)


@needs_kernels
def test_wrong_kernels_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_choice, "_reported", set())  # a reason is reported once
    correct = fast_cells.compared_cells
    monkeypatch.setattr(fast_cells, "compared_cells", lambda *arguments: 1.1 * correct(*arguments))
    with pytest.warns(SpanwiseWarning, match="training without the grid kernels"):
        assert not fast_cells._works(torch.device(DEVICE), 3, 8, 6)
