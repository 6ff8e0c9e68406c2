"""CUDA graphs with a fake recorder, which needs no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from deep_spans import SENTENCES, encode_batch, random_encoder
from tiny import assert_close, transformer
from torch import Tensor, nn

from spanwise.heads import head_settings, make_head
from spanwise.heads.base import Labels
from spanwise.runtime.cuda_graphs import MAX_INPUT_SIZE, MAX_SHAPES, CudaGraphs


@pytest.fixture
def recordings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Tensor, ...]]:
    """Sample inputs of all recordings."""
    samples: list[tuple[Tensor, ...]] = []

    def record(module: nn.Module, inputs: tuple[Tensor, ...], **options: Any) -> nn.Module:
        samples.append(inputs)
        return module.eval()  # no dropout

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", record)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 1))
    return samples


def test_repeated_shapes_are_recorded(recordings: list[Any]) -> None:
    layer = nn.Linear(3, 2)
    graphs = CudaGraphs(layer, layer.forward)
    words, others = torch.randn(4, 3, requires_grad=True), torch.randn(5, 3)
    assert graphs(words) is None
    assert graphs(others) is None
    result = graphs(words)
    assert result is not None
    assert_close(result, layer(words))
    ((sample,),) = recordings
    assert sample.requires_grad
    assert sample is not words
    graphs(words)
    assert len(recordings) == 1


def test_number_of_shapes_is_bounded(recordings: list[Any]) -> None:
    layer = nn.Linear(3, 2)
    graphs = CudaGraphs(layer, layer.forward)
    for length in range(MAX_SHAPES + 5):
        for _ in range(2):
            result = graphs(torch.zeros(length + 1, 3))
        assert (result is None) == (length >= MAX_SHAPES)
    assert len(recordings) == MAX_SHAPES


def test_large_inputs_are_not_recorded(recordings: list[Any]) -> None:
    layer = nn.Linear(1, 1)
    graphs = CudaGraphs(layer, layer.forward)
    large = torch.zeros(1).expand(MAX_INPUT_SIZE + 1, 1)  # takes no memory
    assert [graphs(large) for _ in range(3)] == [None] * 3
    assert not recordings


def test_recorded_encoder_equals_the_original(tiny_bert: Path, recordings: list[Any]) -> None:
    encoder = transformer(tiny_bert).eval()
    inputs = encoder.collate(encoder.prepare(SENTENCES))
    plain = encoder(inputs).words
    encoder.enable_cuda_graphs()
    encoder.training = True
    padded = encoder.collate(encoder.prepare(SENTENCES))
    for _ in range(3):
        assert_close(encoder(padded).words, plain)
    assert len(recordings) == 1


def test_synchronising_architectures_are_not_recorded(tiny_bert: Path) -> None:
    encoder = random_encoder("albert", tiny_bert)
    encoder.enable_cuda_graphs()
    assert encoder.graphs is None


@pytest.mark.parametrize("share", [False, True])
def test_recorded_span_transformer_equals_the_original(tiny_bert: Path, recordings: list[Any], share: bool) -> None:
    encoder = random_encoder("bert", tiny_bert)
    values = {"kind": "deep-span-pruned", "max_width": 5, "decoding": "nested", "budget": 0.3, "share_weights": share}
    head = make_head(encoder, Labels(("A", "B", "C")), head_settings(values).model_dump() | {"kind": "deep-span-pruned"}).eval()
    states, targets = encode_batch(encoder, head, gold=True)
    plain = head.loss(states, targets)
    head.enable_cuda_graphs()
    head.training = True
    for _ in range(3):
        assert_close(head.loss(states, targets).sums, plain.sums)
    assert len(recordings) == (0 if share else 1)
