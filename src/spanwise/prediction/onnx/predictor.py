"""Prediction with an exported model in onnxruntime, without torch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spanwise.batching.plan import plan
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.decoding.decode import Predictions, add_entities, decode
from spanwise.decoding.fragments import LINK_LABELS, PackedSpans, join_fragments
from spanwise.decoding.soft_nms import SoftNms
from spanwise.decoding.thresholds import MinScore, Thresholds, apply_threshold, lowest_threshold, with_default
from spanwise.encoders.subword_indexing import Arrays
from spanwise.prediction.base import BasePredictor, score_scale
from spanwise.prediction.onnx.encoders import load_encoder
from spanwise.prediction.onnx.graphs import COLUMNS, Graph
from spanwise.prediction.onnx.record import HEAD, RELATIONS, read_record
from spanwise.prediction.onnx.relations import RelationScorer
from spanwise.prediction.onnx.tags import decode_tags
from spanwise.prediction.onnx.weights import check_weights
from spanwise.runtime.progress import advance
from spanwise.spans.candidates import grid, packed


class OnnxPredictor(BasePredictor):
    """An exported model, ready to predict.

    ``threads`` defaults to OMP_NUM_THREADS, or to the number of cores.
    """

    def __init__(self, folder: str | Path, device: str = "auto", *, threads: int | None = None) -> None:
        super().__init__()
        self.folder = folder = Path(folder)
        self.record = record = read_record(folder)
        self.types, self.scale = record.entities, score_scale(record.calibration)
        self.default_threshold = None if record.threshold is None else self.scale.calibrate(record.threshold)
        self.thresholds = record.thresholds or {}

        def open_graph(path: Path) -> Graph:
            check_weights(path)
            return Graph(path, session(path, device, threads))

        self.encoder = load_encoder(folder, record, open_graph)
        self._head = open_graph(folder / HEAD)
        self._relations: RelationScorer | None = None
        if record.relations is not None:
            self._relations = RelationScorer(open_graph(folder / RELATIONS), record.relations, record.entities)
            self.finds_relations, self.relation_types = True, record.relations.types

    def predict_chunk(
        self, sentences: Sequence[Sentence], context: Sequence[Sentence], *, threshold: Thresholds, batch_size: int
    ) -> list[Sentence]:  # fmt: skip
        prepared = self.encoder.prepare(sentences, context)
        costs = np.array([self.encoder.cost(item) for item in prepared], np.int64)
        predicted = list(sentences)
        cutoff, min_scores = self._cutoffs(threshold.entities)
        for indices in plan(costs, batch_size, None, None):
            batch = self._predict([prepared[index] for index in indices], cutoff, min_scores, threshold.relations)
            for index, predictions in zip(indices, batch, strict=True):
                predicted[index] = sentences[index].with_predictions(*predictions)
            advance(len(indices))
        relations = threshold.relations
        if (record := self.record.relations) is not None:
            relations = with_default(relations, record.types, record.threshold)
        return list(apply_threshold(predicted, Thresholds(threshold.entities, relations)))

    def _cutoffs(self, threshold: MinScore) -> tuple[float | None, Mapping[str, float] | None]:
        """The head's threshold, None if it has none, and the minimum scores by type."""
        default, requested = self.record.threshold, lowest_threshold(threshold)
        cutoff = min(default, requested) if default is not None and 0 < requested < 1 else default
        if not isinstance(threshold, Mapping):
            return cutoff, None
        return cutoff, {type: threshold.get(type) or default or 0.0 for type in self.types}

    def _predict(
        self, prepared: Sequence[Any], cutoff: float | None, min_scores: Mapping[str, float] | None, relations: MinScore
    ) -> list[Predictions]:  # fmt: skip
        arrays = self.encoder.collate(prepared)
        if not arrays["mask"].any():  # some graphs fail on a batch without words
            return [Predictions(())] * len(prepared)
        arrays = self.encoder.encode(arrays)
        predictions = self._predict_entities(dict(arrays), cutoff, min_scores)
        if self._relations is None:
            return predictions
        return self._relations.predict(predictions, arrays, self._relations.cutoff(relations))

    def _predict_entities(
        self, inputs: Arrays, cutoff: float | None, min_scores: Mapping[str, float] | None
    ) -> list[Predictions]:  # fmt: skip
        record, count = self.record, len(inputs["mask"])
        inputs["threshold"] = np.array(0.5 if cutoff is None else cutoff, np.float32)
        if record.span_widths:
            inputs |= candidate_spans(inputs["mask"].sum(1), record.span_widths)
        columns = self._head.run(inputs)
        policy, log_odds = record.policy, None
        if record.tags is not None:
            self._head.check_tags(columns, inputs["mask"], len(record.tags.start))
            columns = list(decode_tags(columns[0], inputs["mask"], record.tags))
        else:
            tables = (len(self.types), len(record.fragment_types), len(LINK_LABELS))
            self._head.check_spans(columns, inputs["mask"], tables if record.returns == "fragments" else tables[:1])
            log_odds = columns[5]
            if isinstance(policy, SoftNms) and cutoff is not None:
                policy = replace(policy, threshold=cutoff)
        entities = decode(
            *columns[:5], count=count, types=self.types, policy=policy, min_scores=min_scores, log_odds=log_odds
        )  # fmt: skip
        predictions = [Predictions(contiguous) for contiguous in entities]
        if record.returns != "fragments":
            return predictions
        fragments, links = (PackedSpans(*columns[table * COLUMNS :][:5]) for table in (1, 2))
        discontinuous = join_fragments(fragments, links, count=count, types=record.fragment_types)
        paired = zip(predictions, discontinuous, strict=True)
        return [add_entities(contiguous, more) if more else contiguous for contiguous, more in paired]


def candidate_spans(lengths: npt.NDArray[np.int64], widths: Sequence[int]) -> Arrays:
    """Pack all spans of the given widths in sentences of the given lengths.

    >>> candidate_spans(np.array([3, 1]), [2])["start"].tolist()
    [0, 1]
    """
    cells = grid(lengths, max(widths))
    cells &= np.isin(np.arange(1, cells.shape[2] + 1), widths)
    return dict(packed(cells)._asdict())


def session(path: Path, device: str = "cpu", threads: int | None = None) -> Any:
    """Load a graph into an onnxruntime session."""
    try:
        import onnxruntime
    except ImportError:
        raise SpanwiseError(f"{path.parent}: onnxruntime is not installed; run pip install 'spanwise[onnx]'") from None
    if device not in ("cpu", "cuda", "auto"):
        raise SpanwiseError(f"device {device!r}: expected cpu, cuda or auto")
    has_cuda = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    if device == "cuda" and not has_cuda:
        raise SpanwiseError("device 'cuda': this onnxruntime has no CUDA support; install onnxruntime-gpu, or use cpu or auto")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # fatal only; errors are raised as exceptions
    options.intra_op_num_threads = threads or _environment_threads()
    options.enable_mem_pattern = False  # it caches a plan per input shape, and few shapes recur
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads release their core
    providers = ["CUDAExecutionProvider"] if has_cuda and device != "cpu" else []
    try:
        # Without enable_fallback=0 the library prints errors to standard output.
        return onnxruntime.InferenceSession(
            str(path), options, providers=[*providers, "CPUExecutionProvider"], enable_fallback=0
        )
    except Exception as error:  # a truncated file, an operator that this version lacks
        raise SpanwiseError(f"{path}: cannot be read ({' '.join(str(error).split())}); the file may be truncated") from None


def _environment_threads() -> int:
    value = os.environ.get("OMP_NUM_THREADS", "")
    return int(value) if value.isdecimal() else 0
