"""The ONNX graphs of a model: from encoder inputs to states, and from states to scores.

A concatenation of encoders has a graph for each of them; the head's graph joins their states. All
are traced with one example, and every branch taken for it becomes fixed. The example therefore
contains words of one, several and many subwords, and is long enough that its number of tiles and of
pooling levels also suits shorter sentences. ``export_onnx`` compares the result with the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.decoding.entity_pairs import all_pairs
from spanwise.encoders.base import TokenStates
from spanwise.encoders.concat import ConcatEncoder
from spanwise.encoders.joint_indexing import name_arrays, part_folder, select_arrays
from spanwise.encoders.static import StaticEncoder
from spanwise.encoders.subword_indexing import Arrays
from spanwise.encoders.subwords import DEEP, Subwords
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.heads.base import Head, OnnxGraph
from spanwise.heads.onnx import RelationGraph
from spanwise.prediction.onnx.encoders import add_empty_tables
from spanwise.prediction.onnx.predictor import candidate_spans
from spanwise.prediction.onnx.record import ENCODER, HEAD, RELATIONS
from spanwise.prediction.windows import MAX_WORDS
from spanwise.spans.tiles import MIN_ROWS

OPSET = 17
SingleEncoder: TypeAlias = TransformerEncoder | StaticEncoder
GraphEncoder: TypeAlias = SingleEncoder | ConcatEncoder
Tensors: TypeAlias = dict[str, Tensor]


class TracedEncoder(nn.Module):
    """From collated inputs to states: of subwords, or of words and sentences."""

    def __init__(self, encoder: SingleEncoder, names: Sequence[str]) -> None:
        super().__init__()
        self.encoder, self.names = encoder, names

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        inputs = dict(zip(self.names, values, strict=True))
        if isinstance(self.encoder, TransformerEncoder):
            return (self.encoder.subwords(inputs["ids"], inputs["seen"]),)
        states: TokenStates = self.encoder(inputs)
        return states.words, states.cls


class TracedHead(nn.Module):
    """From the outputs of the encoder's graphs to the outputs that the head declares."""

    def __init__(self, encoder: GraphEncoder, head: Head, graph: OnnxGraph, names: Sequence[str]) -> None:
        super().__init__()
        self.encoder, self.head, self.graph, self.names = encoder, head, graph, names

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        inputs = dict(zip(self.names, values, strict=True))
        no_spans = dict.fromkeys(("sentence", "start", "end"), torch.zeros(0, dtype=torch.int64))
        return self.graph.compute(_word_states(self.encoder, inputs), {**no_spans, **inputs})


class TracedRelations(nn.Module):
    """From the outputs of the encoder's graphs, entities and pairs of them to the logits of relations."""

    def __init__(self, encoder: GraphEncoder, head: Head, graph: RelationGraph, names: Sequence[str]) -> None:
        super().__init__()
        self.encoder, self.head, self.graph, self.names = encoder, head, graph, names

    def forward(self, *values: Tensor) -> Tensor:
        inputs = dict(zip(self.names, values, strict=True))
        return self.graph.compute(_word_states(self.encoder, inputs), inputs)


def _word_states(encoder: nn.Module, inputs: Mapping[str, Tensor]) -> TokenStates:
    if isinstance(encoder, ConcatEncoder):
        parts = [_word_states(part, select_arrays(inputs, index)) for index, part in enumerate(encoder.parts)]
        return encoder.join(parts, inputs["mask"])
    if isinstance(encoder, TransformerEncoder):
        return encoder.words(inputs["states"], inputs)
    return TokenStates(inputs["states"], inputs["sentences"], inputs["mask"])


def single_encoders(encoder: nn.Module, folder: Path = Path()) -> Iterator[tuple[nn.Module, Path]]:
    """The encoder, or all parts of a concatenation, with the folders of their files."""
    if not isinstance(encoder, ConcatEncoder):
        yield encoder, folder
        return
    for index, part in enumerate(encoder.parts):
        yield from single_encoders(part, folder / part_folder(index))


def write_graphs(encoder: GraphEncoder, head: Head, graph: OnnxGraph, folder: Path) -> None:
    """Trace all graphs and write them to a folder, which has the folders of the encoder's parts."""
    lengths = _example_lengths(None if graph.relations else graph.max_width)
    head_inputs = _write_encoder(encoder, lengths, folder)
    if graph.relations is not None:
        inputs = head_inputs | _tensors(_example_pairs(lengths))
        _trace(TracedRelations(encoder, head, graph.relations, tuple(inputs)), inputs, ("logits",), folder / RELATIONS)
    if graph.span_widths:
        head_inputs |= _tensors(candidate_spans(np.array(lengths), graph.span_widths))
    if graph.has_threshold_input:
        head_inputs["threshold"] = torch.tensor(0.5)
    _trace(TracedHead(encoder, head, graph, tuple(head_inputs)), head_inputs, graph.outputs, folder / HEAD)


def _write_encoder(encoder: nn.Module, lengths: Sequence[int], folder: Path) -> Tensors:
    """Write the graphs of an encoder and of its parts; return example inputs of the head's graph."""
    if isinstance(encoder, ConcatEncoder):
        inputs: Tensors = {}
        for index, part in enumerate(encoder.parts):
            inputs |= name_arrays(_write_encoder(part, lengths, folder / part_folder(index)), index)
        return inputs | {"mask": inputs["0.mask"].clone()}  # a tensor that is passed twice would be one input
    assert isinstance(encoder, SingleEncoder)
    encoder_inputs, states, head_inputs = _example(encoder, lengths)
    _trace(TracedEncoder(encoder, tuple(encoder_inputs)), encoder_inputs, tuple(states), folder / ENCODER)
    return states | head_inputs


def _example(encoder: SingleEncoder, lengths: Sequence[int]) -> tuple[Tensors, Tensors, Tensors]:
    """Inputs of the encoder, states (random numbers) and other inputs of the head for two sentences."""
    random = torch.Generator().manual_seed(0)
    if isinstance(encoder, TransformerEncoder):
        arrays = _tensors(add_empty_tables(encoder.indexer.collate([_subwords(length) for length in lengths])))
        size = encoder.width * (1 + encoder.lower_layers)
        states = {"states": torch.randn(*arrays["ids"].shape, size, generator=random)}
        # The encoder's window may be shorter than the example: trace it with short rows, one of them padded.
        inputs = {name: arrays.pop(name)[:, :16].clone() for name in ("ids", "seen")}
        inputs["seen"][1, 8:] = False
        return inputs, states, arrays
    texts = [("a", "b" * 30, *["c"] * (length - 2)) for length in lengths]
    prepared = encoder.indexer.prepare([Sentence(str(number), words) for number, words in enumerate(texts)])
    arrays = _tensors(add_empty_tables(encoder.indexer.collate(prepared)))
    states = {
        "states": torch.randn(*arrays["mask"].shape, encoder.width, generator=random),
        "sentences": torch.randn(len(lengths), encoder.width, generator=random),
    }
    return arrays, states, {"mask": arrays["mask"]}


def _example_lengths(max_width: int | None) -> tuple[int, int]:
    """Words of the two example sentences: enough for several tiles or, without ``max_width``, for any window."""
    longest = MAX_WORDS if max_width is None else 2 * max(max_width, MIN_ROWS)
    return longest + 8, longest // 2


def _example_pairs(lengths: Sequence[int]) -> Arrays:
    """Entities of several widths in two sentences, and all pairs of them."""
    starts, ends = np.array([0, 2, 2, 1]), np.array([1, 5, lengths[1] // 2, lengths[1]])
    sentence = np.array([0, 0, 1, 1])
    first, second = all_pairs(np.bincount(sentence))
    label = np.zeros(len(sentence), np.int64)
    return {"sentence": sentence, "start": starts, "end": ends, "label": label, "pair_first": first, "pair_second": second}


def _subwords(words: int) -> Subwords:
    """A sentence in one row whose second word has two subwords and whose third has more than most words."""
    counts = np.ones(words, np.int64)
    counts[1], counts[2] = 2, DEEP + 4
    positions = np.arange(counts.sum())
    return Subwords([positions % 8], np.zeros_like(positions), positions, counts)


def _tensors(arrays: Arrays) -> Tensors:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _trace(module: nn.Module, inputs: Mapping[str, Tensor], outputs: Sequence[str], path: Path) -> None:
    axes = {name: {axis: f"{name}_{axis}" for axis in range(min(value.ndim, 2))} for name, value in inputs.items()}
    for name, dynamic in axes.items():
        if name.endswith("sentences"):  # [B, width]
            del dynamic[1]
    options: dict[str, Any] = {"opset_version": OPSET, "dynamo": False}  # dynamo does not support outputs of unknown length
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # about branches that become fixed
        torch.onnx.export(
            module.eval(), tuple(inputs.values()), str(path), input_names=list(inputs), output_names=list(outputs),
            dynamic_axes=axes, **options,
        )  # fmt: skip
