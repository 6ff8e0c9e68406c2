"""The record that is exported with the ONNX graphs of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from spanwise.core.errors import SpanwiseError
from spanwise.encoders.base import Encoder
from spanwise.encoders.concat import ConcatEncoder
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.export.graphs import GraphEncoder, SingleEncoder, single_encoders
from spanwise.heads import head_values
from spanwise.heads.abilities import HasThreshold, find_ability
from spanwise.heads.base import Head, OnnxGraph
from spanwise.heads.onnx import RelationGraph, TagTransitions
from spanwise.prediction.onnx.record import QuantizationRecord, Record, RelationRecord, Transitions, read_record
from spanwise.runs.folder import RunFolder


def exportable_encoder(encoder: Encoder) -> GraphEncoder:
    """Check that an encoder, with all its parts, has ONNX graphs."""
    for single, _ in single_encoders(encoder):
        if not isinstance(single, SingleEncoder):
            raise SpanwiseError(
                f"the encoder {type(single).__name__} has no ONNX graph; use a transformer or the static encoder"
            )
    assert isinstance(encoder, GraphEncoder)
    return encoder


def check_quantizable(encoder: Encoder) -> None:
    """Check that an encoder has a transformer, whose weights can be quantised."""
    if not any(isinstance(single, TransformerEncoder) for single, _ in single_encoders(encoder)):
        raise SpanwiseError("int8 is for transformer encoders; the LSTMs of the static encoder stay in float32: omit --int8")


def head_graph(head: Head) -> OnnxGraph:
    """The graph that a head declares; a ``SpanwiseError`` with the reason if it has none."""
    graph = head.onnx
    if isinstance(graph, str):
        raise SpanwiseError(f"the head {head_values(head)['kind']} has no ONNX graph: {graph}")
    return graph


def make_record(encoder: GraphEncoder, head: Head, graph: OnnxGraph) -> Record:
    """Return the settings that prediction needs in addition to the graphs."""
    return Record(
        **_encoder_settings(encoder),
        returns=graph.returns,
        precision="float32",
        entities=head.labels.entities,
        span_widths=graph.span_widths,
        threshold=_threshold(head),
        policy=graph.policy,
        fragment_types=graph.fragment_types,
        tags=None if graph.tags is None else _transitions(graph.tags),
        relations=None if graph.relations is None else _relations(graph.relations),
    )


def write_record(record: Record, folder: Path) -> None:
    RunFolder(folder).onnx_file.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")


def save_quantization(folder: Path, quantization: QuantizationRecord) -> None:
    """Add the chosen quantisation to the record of an exported model."""
    update = {"precision": quantization.precision, "quantization": quantization}
    write_record(read_record(folder).model_copy(update=update), folder)


def _encoder_settings(encoder: nn.Module) -> dict[str, Any]:
    """The fields of an ``EncoderRecord``."""
    if isinstance(encoder, ConcatEncoder):
        return {"parts": [_encoder_settings(part) for part in encoder.parts]}
    if isinstance(encoder, TransformerEncoder):
        return {"subwords": encoder.indexer.settings, "unknown_id": encoder.indexer.tokenize.unknown_id}
    return {}


def _threshold(head: Head) -> float | None:
    adjustable = find_ability(head, HasThreshold)
    threshold = None if adjustable is None else adjustable.set_threshold(0.5)
    if adjustable is not None and threshold is not None:
        adjustable.set_threshold(threshold)
    return threshold


def _relations(graph: RelationGraph) -> RelationRecord:
    return RelationRecord(types=graph.types, threshold=graph.threshold, has_joint_scores=graph.has_joint_scores)


def _transitions(tags: TagTransitions) -> Transitions:
    rows: list[Any] = [scores.tolist() for scores in (tags.transitions, tags.start, tags.end)]
    return Transitions(transitions=rows[0], start=rows[1], end=rows[2], is_crf=tags.is_crf)
