"""Dropout, residual sum and norm by kernels, compared with PyTorch.

Without a GPU, Triton interprets them: ``TRITON_INTERPRET=1 python -m pytest tests/encoders/test_residual_norm.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from tiny import mixed_sentences, transformer
from torch import Tensor, nn

from spanwise.encoders.residual_norm import FastOutput, norm_with_kernels, residual_norm, use_fast_norms

INTERPRETS = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETS else "cuda"
needs_kernels = pytest.mark.skipif(not (INTERPRETS or torch.cuda.is_available()), reason="kernels need a GPU")


def test_outputs_keep_their_results_and_weights(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert)
    inputs = encoder.collate(encoder.prepare(mixed_sentences()))
    before, names = encoder(inputs).words, list(encoder.state_dict())
    for _ in range(2):
        use_fast_norms(encoder.model)
        outputs = [module for module in encoder.modules() if isinstance(module, FastOutput)]
        assert len(outputs) == 2 * encoder.model.config.num_hidden_layers
        assert torch.equal(encoder(inputs).words, before)
    assert list(encoder.state_dict()) == names


def test_dropout_applies_to_the_branch_in_training_only() -> None:
    norm, rows = nn.LayerNorm(6), torch.randn(4, 6)
    assert torch.equal(residual_norm(rows, rows, norm, 0.9, training=False), norm(2 * rows))
    torch.manual_seed(1)
    expected = norm(rows + nn.functional.dropout(rows, 0.5))
    torch.manual_seed(1)
    assert torch.equal(residual_norm(rows, rows, norm, 0.5, training=True), expected)


def random_rows(*shape: int) -> tuple[Tensor, Tensor, Tensor, nn.LayerNorm]:
    generator = torch.Generator().manual_seed(1)
    residual, branch, gradient = (torch.randn(*shape, generator=generator).to(DEVICE) for _ in range(3))
    norm = nn.LayerNorm(shape[-1]).to(DEVICE)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(shape[-1], generator=generator))
        norm.bias.copy_(torch.randn(shape[-1], generator=generator))
    return residual.requires_grad_(), branch.requires_grad_(), gradient, norm


@needs_kernels
@pytest.mark.parametrize("shape", [(5, 24), (2, 3, 16), (300, 8)])
def test_kernels_equal_a_layer_norm(shape: tuple[int, ...]) -> None:
    pytest.importorskip("triton")
    residual, branch, gradient, norm = random_rows(*shape)
    results = []
    for function in (lambda: norm(residual + branch), lambda: norm_with_kernels(residual, branch, norm, 0.0)):
        values = function()
        results.append((values, *torch.autograd.grad(values, (residual, branch, norm.weight, norm.bias), gradient)))
    for actual, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@needs_kernels
def test_dropout_has_the_gradients_of_its_mask() -> None:
    pytest.importorskip("triton")
    residual, branch, gradient, norm = random_rows(40, 24)
    torch.manual_seed(3)
    values = norm_with_kernels(residual, branch, norm, 0.4)
    residual_gradient, branch_gradient = torch.autograd.grad(values, (residual, branch), gradient, retain_graph=True)
    is_kept = branch_gradient != 0
    assert is_kept.float().mean().item() == pytest.approx(0.6, abs=0.05)
    expected = norm(residual + branch * is_kept / 0.6)
    torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(branch_gradient, residual_gradient * is_kept / 0.6, rtol=1e-4, atol=1e-5)
    parameters = (residual, norm.weight, norm.bias)
    for actual, other in zip(*(torch.autograd.grad(v, parameters, gradient) for v in (values, expected)), strict=True):
        torch.testing.assert_close(actual, other, rtol=1e-4, atol=1e-4)
