"""The parts of transformer layers compute the same as the layers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from spanwise.core.errors import SpanwiseError
from spanwise.encoders.layers import NAMES, layer_parts


def tiny(architecture: str) -> Any:
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(1)
    config = AutoConfig.for_model(
        architecture, vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=30,
    )  # fmt: skip
    model = AutoModel.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) / 3)
        if architecture == "mpnet":  # its bias for distances does not belong to a layer
            model.encoder.relative_attention_bias.weight.zero_()
    return model


def run_layer(layer: Any, words: Tensor) -> Tensor:
    """Run a self-attention layer from its parts."""
    part = layer.modules
    heads = [part[name](words).unflatten(-1, (layer.heads, -1)).transpose(0, 1) for name in ("query", "key", "value")]
    query, key, value = heads
    weights = (query @ key.transpose(1, 2) / query.shape[-1] ** 0.5).softmax(-1)
    words = part["mixing_norm"](words + part["mixing"]((weights @ value).transpose(0, 1).flatten(1)))
    return part["outer_norm"](words + part["outer"](layer.activation(part["inner"](words))))


@pytest.mark.parametrize("architecture", NAMES)
@torch.no_grad()
def test_parts_compute_the_layer(architecture: str) -> None:
    model = tiny(architecture)
    output = model(input_ids=torch.tensor([[5, 9, 12, 30]]), output_hidden_states=True)
    layers = layer_parts(model)
    assert len(layers) == 2
    for layer, below, above in zip(layers, output.hidden_states, output.hidden_states[1:], strict=False):
        torch.testing.assert_close(run_layer(layer, below[0]), above[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("architecture", ["distilbert", "albert", "deberta-v2"])
def test_unsupported_architectures_are_refused(architecture: str) -> None:
    with pytest.raises(SpanwiseError, match=f"cannot copy the layers of a {architecture} encoder, only those of bert"):
        layer_parts(tiny(architecture))
