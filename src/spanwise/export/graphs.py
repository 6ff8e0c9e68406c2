"""A model's two graphs, traced: what an encoder reads to states, and states to scored spans.

**Tracing.** A trace follows one example, and whatever was decided for it is decided for good. So the example has words of
one, several and very many subwords, and it is long: what is right for it (tiles of a fixed size, as many levels of maxima as
the widest span wants) is right for shorter sentences too. ``export`` then compares.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from spanwise.core.types import Sentence
from spanwise.encoders.base import TokenStates
from spanwise.encoders.rows import Arrays
from spanwise.encoders.static import StaticEncoder
from spanwise.encoders.subwords import DEEP, Subwords
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.heads.base import Head, ScoredSpans
from spanwise.heads.discontinuous import Discontinuous, ScoredFragments
from spanwise.heads.seqner import SeqNer
from spanwise.prediction.onnx.predictor import spans_of, whole
from spanwise.prediction.onnx.record import ENCODER, HEAD, Record
from spanwise.prediction.windows import LONGEST
from spanwise.spans.tiles import SMALLEST

OPSET = 17
COLUMNS = ("sentence", "start", "end", "label", "score")
GraphEncoder: TypeAlias = TransformerEncoder | StaticEncoder
Tensors: TypeAlias = dict[str, Tensor]


class EncoderGraph(nn.Module):
    """From what the host prepares to states: those of subwords, or of words and sentences."""

    def __init__(self, encoder: GraphEncoder, names: Sequence[str]) -> None:
        super().__init__()
        self.encoder, self.names = encoder, names

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        inputs = dict(zip(self.names, values, strict=True))
        if isinstance(self.encoder, TransformerEncoder):
            return (self.encoder.subwords(inputs["ids"], inputs["seen"]),)
        states: TokenStates = self.encoder(inputs)
        return states.words, states.cls


class HeadGraph(nn.Module):
    """From states to what the head proposes."""

    def __init__(self, encoder: GraphEncoder, head: Head, names: Sequence[str]) -> None:
        super().__init__()
        self.encoder, self.head, self.names = encoder, head, names

    def forward(self, *values: Tensor) -> tuple[Tensor, ...]:
        inputs = dict(zip(self.names, values, strict=True))
        if isinstance(self.encoder, TransformerEncoder):
            states = self.encoder.words(inputs["states"], inputs)
        else:
            states = TokenStates(inputs["states"], inputs["sentences"], inputs["mask"])
        if isinstance(self.head, SeqNer):
            return (self.head.emissions(states)[0],)
        if "threshold" in inputs:
            self.head.set_threshold(inputs["threshold"])  # type: ignore[arg-type]  # an input, not a number
        none = torch.zeros(0, dtype=torch.int64)  # where no spans are named that are to be judged
        scored = self.head.score(states, {**dict.fromkeys(("sentence", "start", "end"), none), **inputs})
        return tuple(column for table in _tables(scored) for column in table.columns)


def _tables(scored: ScoredSpans) -> Sequence[ScoredSpans]:
    return (scored.spans, scored.fragments, scored.links) if isinstance(scored, ScoredFragments) else (scored,)


def write_graphs(encoder: GraphEncoder, head: Head, record: Record, folder: Path, *, has_threshold: bool) -> None:
    """Trace both graphs into a folder."""
    lengths = _lengths(head.inner)
    taken, states, inputs = _parts(encoder, lengths)
    _trace(EncoderGraph(encoder, tuple(taken)), taken, tuple(states), folder / ENCODER)
    inputs = states | inputs
    if record.widths:
        inputs |= _tensors(spans_of(np.array(lengths), record.widths))
    if has_threshold:
        inputs["threshold"] = torch.tensor(0.5)
    tables = ("spans", "fragments", "links") if isinstance(head, Discontinuous) else ("spans",)
    outputs = ["tags"] if record.chain else [f"{table}.{name}" for table in tables for name in COLUMNS]
    _trace(HeadGraph(encoder, head, tuple(inputs)), inputs, outputs, folder / HEAD)


def _parts(encoder: GraphEncoder, lengths: Sequence[int]) -> tuple[Tensors, Tensors, Tensors]:
    """An example of two sentences: what the encoder takes, what it gives (any numbers will do), and what else a head takes."""
    random = torch.Generator().manual_seed(0)
    if isinstance(encoder, TransformerEncoder):
        arrays = _tensors(whole(encoder.rows.collate([_in_subwords(length) for length in lengths])))
        size = encoder.width * (1 + encoder.below)
        states = {"states": torch.randn(*arrays["ids"].shape, size, generator=random)}
        # Short rows will do for the encoder, whose window may be shorter than the example; one of them is padded.
        taken = {name: arrays.pop(name)[:, :16].clone() for name in ("ids", "seen")}
        taken["seen"][1, 8:] = False
        return taken, states, arrays
    words = [("a", "b" * 30, *["c"] * (length - 2)) for length in lengths]
    items = encoder.numbers.prepare([Sentence(str(number), own) for number, own in enumerate(words)])
    arrays = _tensors(whole(encoder.numbers.collate(items)))
    states = {
        "states": torch.randn(*arrays["mask"].shape, encoder.width, generator=random),
        "sentences": torch.randn(len(lengths), encoder.width, generator=random),
    }
    return arrays, states, {"mask": arrays["mask"]}


def _lengths(head: Head) -> tuple[int, int]:
    """The words of the example's two sentences: where spans have no widest, more than are ever judged at once."""
    widest = getattr(head, "max_width", 1)
    longest = LONGEST if widest is None else 2 * max(widest, SMALLEST)  # from where on there are several tiles
    return longest + 8, longest // 2


def _in_subwords(words: int) -> Subwords:
    """A sentence of so many words in one row, whose second word has two subwords and the third one more than most have."""
    counts = np.ones(words, np.int64)
    counts[1], counts[2] = 2, DEEP + 4
    place = np.arange(counts.sum())
    return Subwords([place % 8], np.zeros_like(place), place, counts)


def _tensors(arrays: Arrays) -> Tensors:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _trace(module: nn.Module, inputs: Mapping[str, Tensor], outputs: Sequence[str], path: Path) -> None:
    axes = {name: {axis: f"{name}_{axis}" for axis in range(min(value.ndim, 2))} for name, value in inputs.items()}
    axes.get("sentences", {}).pop(1, None)
    fixed: dict[str, Any] = {"opset_version": OPSET, "dynamo": False}  # the other exporter knows no open lengths of results
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of decisions that are made for good: see above
        torch.onnx.export(
            module.eval(), tuple(inputs.values()), str(path), input_names=list(inputs), output_names=list(outputs),
            dynamic_axes=axes, **fixed,
        )  # fmt: skip
