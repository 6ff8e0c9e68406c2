"""An exported model put to work by onnxruntime, without torch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from spanwise.batching.plan import plan
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Predictions, decode, in_text_order
from spanwise.decoding.fragments import Columns, joined
from spanwise.decoding.soft_nms import SoftNms
from spanwise.decoding.thresholds import Threshold, apply_threshold, lowest
from spanwise.encoders.numbers import FILE as VOCABULARY
from spanwise.encoders.numbers import Numbers
from spanwise.encoders.rows import Arrays, Rows
from spanwise.encoders.tokenizing import WordTokenizer
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.onnx.record import ENCODER, HEAD, TOKENIZER, Record, read_record
from spanwise.prediction.onnx.tags import tagged
from spanwise.spans.candidates import grid, packed

ROWS = 256  # read at once: a batch of long sentences needs no more memory than a large one of short sentences


class Host(Protocol):
    """What makes a graph's inputs of sentences: ``Rows`` for a transformer, ``Numbers`` for the static encoder."""

    def prepare(self, sentences: Sequence[Sentence], context: Sequence[Sentence] = ()) -> list[Any]: ...

    def cost(self, prepared: Any) -> int: ...

    def collate(self, prepared: Sequence[Any]) -> Arrays: ...


class OnnxPredictor(BasePredictor):
    """A model in ONNX, ready to predict; ``threads`` are as many as OMP_NUM_THREADS says, or as there are cores."""

    def __init__(self, folder: str | Path, device: str = "auto", *, threads: int | None = None) -> None:
        super().__init__()
        folder = Path(folder)
        self.record = record = read_record(folder)
        self.types, self.own_threshold = record.entities, record.threshold
        self.host = _host(folder, record)
        self._encoder, self._head = (session(folder / name, device, threads) for name in (ENCODER, HEAD))
        self._head_takes = [one.name for one in self._head.get_inputs()]

    def find(
        self, sentences: Sequence[Sentence], around: Sequence[Sentence], *, threshold: Threshold, batch_size: int
    ) -> list[Sentence]:  # fmt: skip
        prepared = self.host.prepare(sentences, around)
        costs = np.array([self.host.cost(item) for item in prepared], np.int64)
        found = list(sentences)
        bar, min_scores = self._proposed(threshold)
        for numbers in plan(costs, batch_size, None, None):
            for number, own in zip(numbers, self._read([prepared[n] for n in numbers], bar, min_scores), strict=True):
                found[number] = replace(sentences[number], **own._asdict(), links=())
        return list(apply_threshold(found, threshold))

    def _proposed(self, threshold: Threshold) -> tuple[float | None, Mapping[str, float] | None]:
        """The score above which entities are proposed, if that can be chosen, and those that types have of their own."""
        own, asked = self.own_threshold, lowest(threshold)
        bar = min(own, asked) if own is not None and 0 < asked < 1 else own
        if not isinstance(threshold, Mapping):
            return bar, None
        return bar, {type: threshold.get(type) or own or 0.0 for type in self.types}

    def _read(self, prepared: Sequence[Any], bar: float | None, min_scores: Mapping[str, float] | None) -> list[Predictions]:
        record, count = self.record, len(prepared)
        inputs = self.host.collate(prepared)
        if not inputs["mask"].any():  # no words at all, for which some graphs have no answer
            return [Predictions(())] * count
        inputs = self._encoded(whole(inputs))
        inputs["threshold"] = np.array(0.5 if bar is None else bar, np.float32)
        if record.widths:
            inputs |= spans_of(inputs["mask"].sum(1), record.widths)
        columns = self._head.run(None, {name: inputs[name] for name in self._head_takes})
        policy = record.policy
        if record.chain is not None:
            columns = list(tagged(columns[0], inputs["mask"], record.chain))
        elif isinstance(policy, SoftNms) and bar is not None:
            policy = replace(policy, threshold=bar)
        entities = decode(*columns[:5], count=count, types=self.types, policy=policy, min_scores=min_scores)
        found = [Predictions(own) for own in entities]
        if record.gives != "fragments":
            return found
        more = joined(Columns(*columns[5:10]), Columns(*columns[10:]), count=count, types=record.fragments)
        return [in_text_order(one, own) if own else one for one, own in zip(found, more, strict=True)]

    def _encoded(self, arrays: Arrays) -> Arrays:
        """With what the encoder's graph gives, for the head's."""
        taken = {one.name: arrays[one.name] for one in self._encoder.get_inputs()}
        rows = len(taken.get("ids", ()))
        if rows <= ROWS:
            given = self._encoder.run(None, taken)
        else:  # rows know nothing of each other
            parts = [{name: array[at : at + ROWS] for name, array in taken.items()} for at in range(0, rows, ROWS)]
            given = [np.concatenate([self._encoder.run(None, part)[0] for part in parts])]
        return arrays | {one.name: array for one, array in zip(self._encoder.get_outputs(), given, strict=True)}


def spans_of(lengths: npt.NDArray[np.int64], widths: Sequence[int]) -> Arrays:
    """The spans of sentences of so many words that have one of the widths, packed: ``sentence``, ``start``, ``end``.

    >>> spans_of(np.array([3, 1]), [2])["start"].tolist()
    [0, 1]
    """
    cells = grid(lengths, max(widths))
    cells &= np.isin(np.arange(1, cells.shape[2] + 1), widths)
    return dict(packed(cells)._asdict())


def whole(arrays: Arrays) -> Arrays:
    """With tables that are never left out or empty where a graph cannot do without: its inputs are always the same.

    A transformer's are those of words of several subwords, the static encoder's that of the shorter spellings.
    """
    none = np.zeros((0, 1), np.int64)
    for name in ("several", "deep") if "first" in arrays else ():
        arrays = {name: none, f"{name}_counts": none[:, 0], f"{name}_words": none[:, 0], **arrays}
    if "short" in arrays and not len(arrays["short"]):
        arrays |= {"short": np.zeros((1, 1), np.int64), "spelling": arrays["spelling"] + 1}
    return arrays


def _host(folder: Path, record: Record) -> Host:
    try:
        if record.rows is None:
            return Numbers.load(folder)
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # tokenizers raises no other kind
        name = TOKENIZER if record.rows else VOCABULARY
        raise SpanwiseError(f"{folder / name}: cannot be read: {' '.join(str(error).split())}") from None
    return Rows(WordTokenizer(tokenizer, record.unknown_id), record.rows)


def session(path: Path, device: str = "cpu", threads: int | None = None) -> Any:
    """A graph that is ready to run."""
    try:
        import onnxruntime
    except ImportError:
        raise SpanwiseError(f"{path.parent}: needs onnxruntime: pip install 'spanwise[onnx]'") from None
    if device not in ("cpu", "cuda", "auto"):
        raise SpanwiseError(f"device {device!r}: expected cpu, cuda or auto")
    has_cuda = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    if device == "cuda" and not has_cuda:
        raise SpanwiseError("device 'cuda': this onnxruntime has no CUDA (onnxruntime-gpu has); take cpu or auto")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised too
    options.intra_op_num_threads = threads or _asked_threads()
    options.enable_mem_pattern = False  # made for shapes that come again, and kept for every shape
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # threads that wait leave the cores to others
    providers = ["CUDAExecutionProvider"] if has_cuda and device != "cpu" else []
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=[*providers, "CPUExecutionProvider"])
    except Exception as error:  # of whatever kind: a cut file, an operator that this version does not have
        raise SpanwiseError(f"{path}: cannot be read, it may be cut off: {' '.join(str(error).split())}") from None


def _asked_threads() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() else 0
