"""Dropout, residual sum and norm by kernels, compared with PyTorch.

Without a GPU, Triton interprets them: ``TRITON_INTERPRET=1 python -m pytest tests/encoders/test_residual_norm.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from kernel_device import DEVICE, needs_kernels
from tiny import mixed_sentences, transformer
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseWarning
from spanwise.encoders import residual_norm as residual_norm_module
from spanwise.encoders.residual_norm import FastOutput, can_use_kernels, norm_with_kernels, residual_norm, use_fast_norms


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
    linear, norm, rows = nn.Linear(6, 6), nn.LayerNorm(6), torch.randn(4, 6)
    assert torch.equal(residual_norm(rows, rows, linear, norm, 0.9, training=False), norm(rows + linear(rows)))
    torch.manual_seed(1)
    expected = norm(rows + nn.functional.dropout(linear(rows), 0.5))
    torch.manual_seed(1)
    assert torch.equal(residual_norm(rows, rows, linear, norm, 0.5, training=True), expected)


def random_rows(*shape: int) -> tuple[Tensor, Tensor, Tensor, Tensor, nn.LayerNorm]:
    """Residual, branch, the bias of the branch, the gradient of the result, and a norm."""
    generator = torch.Generator().manual_seed(1)
    residual, branch, gradient = (torch.randn(*shape, generator=generator).to(DEVICE) for _ in range(3))
    norm = nn.LayerNorm(shape[-1]).to(DEVICE)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(shape[-1], generator=generator))
        norm.bias.copy_(torch.randn(shape[-1], generator=generator))
    bias = torch.randn(shape[-1], generator=generator).to(DEVICE)
    return residual.requires_grad_(), branch.requires_grad_(), bias.requires_grad_(), gradient, norm


@needs_kernels
@pytest.mark.parametrize("shape", [(5, 24), (2, 3, 16), (300, 8), (9, 1000), (0, 8), (5000, 8)])
def test_kernels_equal_a_layer_norm(shape: tuple[int, ...]) -> None:
    residual, branch, bias, gradient, norm = random_rows(*shape)
    parameters = (residual, branch, bias, norm.weight, norm.bias)
    results = []
    for function in (lambda: norm(residual + branch + bias), lambda: norm_with_kernels(residual, branch, bias, norm, 0.0)):
        values = function()
        results.append((values, *torch.autograd.grad(values, parameters, gradient)))
    for actual, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


@needs_kernels
def test_dropout_has_the_gradients_of_its_mask() -> None:
    residual, branch, bias, gradient, norm = random_rows(40, 24)
    torch.manual_seed(3)
    values = norm_with_kernels(residual, branch, bias, norm, 0.4)
    residual_gradient, branch_gradient = torch.autograd.grad(values, (residual, branch), gradient, retain_graph=True)
    is_kept = branch_gradient != 0
    assert is_kept.float().mean().item() == pytest.approx(0.6, abs=0.05)
    expected = norm(residual + (branch + bias) * is_kept / 0.6)
    torch.testing.assert_close(values, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(branch_gradient, residual_gradient * is_kept / 0.6, rtol=1e-4, atol=1e-5)
    parameters = (residual, bias, norm.weight, norm.bias)
    for actual, other in zip(*(torch.autograd.grad(v, parameters, gradient) for v in (values, expected)), strict=True):
        torch.testing.assert_close(actual, other, rtol=1e-4, atol=1e-4)


@needs_kernels
@pytest.mark.parametrize("branch_type", [torch.float32, torch.bfloat16])
def test_kernels_pass_their_comparison_with_pytorch(branch_type: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    from spanwise.encoders import norm_kernels

    works = residual_norm_module._works.__wrapped__
    arguments = (torch.device(DEVICE), 24, torch.float32, branch_type, torch.float32)
    assert works(*arguments)
    monkeypatch.setattr(norm_kernels, "sum_columns", lambda sums, dtype: sums[:-1].sum(0).to(dtype))
    monkeypatch.setattr("spanwise.runtime.kernel_choice._reported", set())
    with pytest.warns(SpanwiseWarning, match="without the norm kernels, which is slower: results differ"):
        assert not works(*arguments)


def test_other_classes_of_linear_layers_compute_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as those of adapters, which add another product."""
    monkeypatch.setattr(residual_norm_module, "_works", lambda *arguments: True)
    monkeypatch.setenv("SPANWISE_KERNELS", "1")  # an earlier training in this process may have been short

    class OnGpu(Tensor):
        is_cuda = True

    class Adapted(nn.Linear):
        pass

    rows = torch.ones(2, 4).as_subclass(OnGpu)
    assert can_use_kernels(rows, nn.Linear(4, 4))
    assert not can_use_kernels(rows, Adapted(4, 4))
    assert not can_use_kernels(rows, nn.Linear(4, 4, bias=False))
    with torch.no_grad():
        assert not can_use_kernels(rows, nn.Linear(4, 4))
