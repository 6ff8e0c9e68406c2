"""The encoder of an exported model: one graph, or one for each part of a concatenation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.encoders.joint_indexing import JointIndexer, name_arrays, part_folder, select_arrays
from spanwise.encoders.subword_indexing import Arrays, SubwordIndexer
from spanwise.encoders.tokenizer_files import check_tokenizer_file
from spanwise.encoders.word_indexing import FILE as VOCABULARY
from spanwise.encoders.word_indexing import WordIndexer
from spanwise.encoders.word_tokenizer import WordTokenizer
from spanwise.prediction.onnx.graphs import Graph
from spanwise.prediction.onnx.record import ENCODER, TOKENIZER, EncoderRecord

MAX_ROWS = 256  # encoded at once; bounds the memory for batches of long sentences


class OnnxEncoder(Protocol):
    """Encoder that turns sentences into the inputs of the head's graph."""

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Any]: ...

    def cost(self, prepared: Any) -> int: ...

    def collate(self, prepared: Sequence[Any]) -> Arrays: ...

    def encode(self, arrays: Arrays) -> Arrays:
        """The arrays of a batch, and the outputs of the encoder's graphs."""


class SingleEncoder:
    """A transformer, with a ``SubwordIndexer``, or the static encoder, with a ``WordIndexer``."""

    def __init__(self, indexer: SubwordIndexer | WordIndexer, graph: Graph) -> None:
        self.indexer, self.graph = indexer, graph
        self.is_transformer = isinstance(indexer, SubwordIndexer)

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Any]:
        return [*self.indexer.prepare(sentences, context)]

    def cost(self, prepared: Any) -> int:
        return self.indexer.cost(prepared)

    def collate(self, prepared: Sequence[Any]) -> Arrays:
        arrays = add_empty_tables(self.indexer.collate(prepared))
        if self.is_transformer:
            arrays["ids"] = repeat_last(arrays["ids"], arrays["seen"])
        return arrays

    def encode(self, arrays: Arrays) -> Arrays:
        inputs = self.graph.select(arrays)
        rows = len(inputs.get("ids", ()))
        if rows <= MAX_ROWS:
            outputs = self.graph.run(inputs)
        else:  # rows are independent of each other
            starts = range(0, rows, MAX_ROWS)
            parts = [{name: array[start : start + MAX_ROWS] for name, array in inputs.items()} for start in starts]
            outputs = [np.concatenate([self.graph.run(part)[0] for part in parts])]
        return arrays | dict(zip(self.graph.outputs, outputs, strict=True))


def repeat_last(ids: npt.NDArray[np.int64], seen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Replace padding by the last subword of its row.

    Nothing reads the states of padding, but in 8 bits they count in the scale of a product's input, and
    those of a padding subword are often larger than all others.

    >>> repeat_last(np.array([[5, 6, 7], [5, 7, 0]]), np.array([[True, True, True], [True, True, False]])).tolist()
    [[5, 6, 7], [5, 7, 7]]
    """
    last = ids[np.arange(len(ids)), np.maximum(seen.sum(1), 1) - 1]
    return np.where(seen, ids, last[:, None])


class JointEncoder(JointIndexer[OnnxEncoder]):
    """Several encoders, whose states the head's graph joins. The arrays of part 1 are named ``1.name``."""

    def encode(self, arrays: Arrays) -> Arrays:
        for index, part in enumerate(self.parts):
            arrays = arrays | name_arrays(part.encode(select_arrays(arrays, index)), index)
        return arrays


def transformers(encoder: OnnxEncoder) -> list[SingleEncoder]:
    """The encoder if it is a transformer, or the transformers among its parts."""
    if isinstance(encoder, JointEncoder):
        return [single for part in encoder.parts for single in transformers(part)]
    return [encoder] if isinstance(encoder, SingleEncoder) and encoder.is_transformer else []


def load_encoder(folder: Path, record: EncoderRecord, open_graph: Callable[[Path], Graph]) -> OnnxEncoder:
    """Load the files and graphs of an encoder; each part of a concatenation has its own folder."""
    if record.parts:
        parts = (load_encoder(folder / part_folder(index), part, open_graph) for index, part in enumerate(record.parts))
        return JointEncoder(list(parts))
    return SingleEncoder(_load_indexer(folder, record), open_graph(folder / ENCODER))


def _load_indexer(folder: Path, record: EncoderRecord) -> SubwordIndexer | WordIndexer:
    try:
        if record.subwords is None:
            return WordIndexer.load(folder)
        check_tokenizer_file(folder / TOKENIZER)
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    except SpanwiseError:
        raise
    except Exception as error:  # tokenizers raises plain Exception
        name = TOKENIZER if record.subwords else VOCABULARY
        raise SpanwiseError(f"{folder / name}: cannot be read: {' '.join(str(error).split())}") from None
    return SubwordIndexer(WordTokenizer(tokenizer, record.unknown_id), record.subwords)


def add_empty_tables(arrays: Arrays) -> Arrays:
    """Add the optional tables, because a graph always takes the same inputs.

    For a transformer these are the tables of words with several subwords; for the static encoder,
    the table of short spellings, which must not be empty.
    """
    empty = np.zeros((0, 1), np.int64)
    for name in ("several", "deep") if "first" in arrays else ():
        arrays = {name: empty, f"{name}_counts": empty[:, 0], f"{name}_words": empty[:, 0], **arrays}
    if "short" in arrays and not len(arrays["short"]):
        arrays |= {"short": np.zeros((1, 1), np.int64), "spelling": arrays["spelling"] + 1}
    return arrays
