"""Attention by kernels, compared with that of the transformers library.

Without a GPU, Triton interprets them: ``TRITON_INTERPRET=1 python -m pytest tests/encoders/test_fast_attention.py``.
"""

from __future__ import annotations

import pickle
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from kernel_device import DEVICE, needs_kernels
from tiny import mixed_sentences, transformer
from torch import Tensor

from spanwise.core.errors import SpanwiseWarning
from spanwise.encoders import fast_attention, residual_norm
from spanwise.encoders.fast_attention import FastAttention, attend_with_kernels, use_fast_attention
from spanwise.encoders.residual_norm import FastOutput
from spanwise.encoders.transformer import TransformerEncoder


def test_layers_keep_their_results_and_weights(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert)
    inputs = encoder.collate(encoder.prepare(mixed_sentences()))
    before, names = encoder(inputs).words, list(encoder.state_dict())
    use_fast_attention(encoder.model)
    layers = [module for module in encoder.modules() if isinstance(module, FastAttention)]
    assert len(layers) == encoder.model.config.num_hidden_layers
    assert torch.equal(encoder(inputs).words, before)
    assert list(encoder.state_dict()) == names
    use_fast_attention(encoder.model)
    assert torch.equal(encoder(inputs).words, before)


def test_fast_layers_are_pickled_for_worker_processes(tiny_bert: Path) -> None:
    encoder = transformer(tiny_bert)
    encoder.enable_step_graphs()
    inputs = encoder.collate(encoder.prepare(mixed_sentences()))
    for other in (pickle.loads(pickle.dumps(encoder.model)), deepcopy(encoder.model)):
        kinds = [type(module) for module in encoder.model.modules()]
        assert [type(module) for module in other.modules()] == kinds
        assert FastOutput in {base for kind in kinds for base in kind.__mro__}
        states = [model(input_ids=inputs["ids"]).last_hidden_state for model in (encoder.model, other)]
        assert torch.equal(*states)


def learn(encoder: TransformerEncoder, inputs: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    encoder.zero_grad()
    words = encoder(inputs).words[inputs["mask"]]
    words.square().sum().backward()
    return words.detach(), {name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None}


@needs_kernels
def test_kernels_learn_the_same(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = transformer(tiny_bert).to(DEVICE).train()
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    encoder.enable_step_graphs()
    inputs = {name: tensor.to(DEVICE) for name, tensor in encoder.collate(encoder.prepare(mixed_sentences())).items()}
    results = []
    calls = []
    for is_fast in (False, True):
        for module in (fast_attention, residual_norm):
            monkeypatch.setattr(module, "can_use_kernels", lambda *states, is_fast=is_fast: calls.append(is_fast) or is_fast)
        results.append(learn(encoder, inputs))
    assert calls.count(True) == 3 * encoder.model.config.num_hidden_layers  # attention and two norms per layer
    torch.testing.assert_close(results[1][0], results[0][0], rtol=1e-4, atol=1e-5)
    assert results[1][1].keys() == results[0][1].keys()
    for name, gradient in results[0][1].items():
        rounding = 1e-5 * (1 + gradient.abs().max().item())  # the gradient of the keys' bias is 0
        torch.testing.assert_close(
            results[1][1][name], gradient, rtol=1e-3, atol=rounding, msg=lambda text, n=name: f"{n}: {text}"
        )


@needs_kernels
@pytest.mark.parametrize("length", [1, 17])
def test_dropout_has_the_gradients_of_its_weights(length: int) -> None:
    """With one mask of dropout, the result is linear in the values and smooth in the states."""
    generator = torch.Generator().manual_seed(2)
    states, gradient = (torch.randn(2, length, 32, generator=generator).to(DEVICE) for _ in range(2))
    weight, bias = torch.randn(96, 32, generator=generator).to(DEVICE) / 6, torch.randn(96, generator=generator).to(DEVICE)
    mask = (torch.arange(length) < torch.tensor([[length], [max(1, length - 4)]])).to(DEVICE)

    def mix(states: Tensor, bias: Tensor, dropout: float = 0.3) -> Tensor:
        torch.manual_seed(4)
        return attend_with_kernels(states @ weight.t() + bias, mask, 2, dropout)

    states.requires_grad_()
    bias.requires_grad_()
    mixed = mix(states, bias)
    state_slope, bias_slope = torch.autograd.grad(mixed, (states, bias), gradient)
    with torch.no_grad():
        assert length == 1 or not torch.allclose(mixed, mix(states, bias, 0.0))
        for tensor, slope in ((states, state_slope), (bias, bias_slope)):
            step = 5e-3 * torch.randn(tensor.shape, generator=generator).to(DEVICE)
            up, down = ((states + sign * step, bias) if tensor is states else (states, bias + sign * step) for sign in (1, -1))
            change = (gradient * (mix(*up) - mix(*down))).sum() / 2
            torch.testing.assert_close((step * slope).sum(), change, rtol=1e-2, atol=1e-3)


@needs_kernels
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_pass_their_comparison_with_pytorch(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    from spanwise.encoders import attention_kernels

    works = fast_attention._works.__wrapped__
    assert works(torch.device(DEVICE), 2, 16, 16, dtype)
    attention = attention_kernels.TextAttention.apply
    monkeypatch.setattr(
        attention_kernels.TextAttention, "apply", lambda parts, mask, *rest: attention(parts, mask | True, *rest)
    )
    monkeypatch.setattr("spanwise.runtime.kernel_choice._reported", set())
    with pytest.warns(SpanwiseWarning, match="without the attention kernels, which is slower: results differ"):
        assert not works(torch.device(DEVICE), 2, 16, 16, dtype)
