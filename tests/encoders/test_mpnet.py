"""Fused attention of MPNet against the implementation of the transformers library, and full masks."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from spanwise.encoders.mpnet import use_fused_attention

SHAPE = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
LENGTH = 150  # more than the 128 words after which distances share a bucket
LENGTHS = (LENGTH, 90, 1)


@pytest.fixture(scope="module")
def models() -> tuple[Any, Any]:
    """The library's MPNet and the same model with fused attention."""
    from transformers import MPNetConfig, MPNetModel

    torch.manual_seed(1)
    config = MPNetConfig(**SHAPE, max_position_embeddings=LENGTH + 2, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    model = MPNetModel(config, add_pooling_layer=False)
    torch.nn.init.normal_(model.encoder.relative_attention_bias.weight, std=5.0)
    fused = copy.deepcopy(model)
    use_fused_attention(fused)
    return model, fused


def inputs() -> tuple[Tensor, Tensor]:
    """Rows of different lengths and their padding mask."""
    mask = torch.arange(LENGTH) < torch.tensor(LENGTHS).unsqueeze(1)
    ids = torch.randint(4, 40, (3, LENGTH), generator=torch.Generator().manual_seed(2))
    return ids.masked_fill(~mask, 1), mask


def test_names_of_weights_stay_the_same(models: tuple[Any, Any]) -> None:
    model, fused = models
    assert list(fused.state_dict()) == list(model.state_dict())


@pytest.mark.parametrize("has_full_mask", [False, True])
def test_states_and_gradients_are_those_of_the_library(models: tuple[Any, Any], has_full_mask: bool) -> None:
    model, fused = models
    ids, mask = inputs()
    full = mask[:, None, None, :].expand(-1, 1, LENGTH, LENGTH)
    expected = model(input_ids=ids, attention_mask=mask.long(), output_hidden_states=True)
    actual = fused(input_ids=ids, attention_mask=full if has_full_mask else mask.long(), output_hidden_states=True)
    assert len(actual.hidden_states) == 3
    for one, other in zip(expected.hidden_states, actual.hidden_states, strict=True):
        torch.testing.assert_close(other[mask], one[mask], atol=1e-5, rtol=1e-5)
    for one, output in ((model, expected), (fused, actual)):
        one.zero_grad()
        output.last_hidden_state[mask].square().sum().backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters()}
    for name, weight in fused.named_parameters():
        torch.testing.assert_close(weight.grad, gradients[name], atol=1e-4, rtol=1e-4, msg=name)


def test_distances_count(models: tuple[Any, Any]) -> None:
    """Without the bias of distances the states would differ: the comparison above can fail."""
    _, fused = models
    ids, mask = inputs()
    with torch.no_grad():
        before = fused(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        changed = copy.deepcopy(fused)
        changed.encoder.relative_attention_bias.weight.zero_()
        after = changed(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    assert (before - after)[mask].abs().max() > 1e-3


def test_distilbert_accepts_a_full_mask() -> None:
    from transformers import DistilBertConfig, DistilBertModel

    torch.manual_seed(1)
    model = DistilBertModel(DistilBertConfig(vocab_size=40, dim=16, n_layers=1, n_heads=2, hidden_dim=24)).eval()
    ids, mask = inputs()
    with torch.no_grad():
        padded = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        full = model(input_ids=ids, attention_mask=mask[:, None, None, :].expand(-1, 1, LENGTH, LENGTH)).last_hidden_state
    torch.testing.assert_close(full[mask], padded[mask])
