"""Which models have a graph, and what an exported model must know besides it."""

from __future__ import annotations

from typing import Any, Literal

import torch

from spanwise.core.errors import SpanwiseError
from spanwise.encoders.base import Encoder
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.export.graphs import GraphEncoder
from spanwise.heads import head_values
from spanwise.heads.base import Head
from spanwise.heads.biaffine import Biaffine
from spanwise.heads.deep_span import DeepSpan
from spanwise.heads.discontinuous import Discontinuous
from spanwise.heads.locate_label import LocateLabel
from spanwise.heads.pointer import Pointer
from spanwise.heads.pruned_span import PrunedSpan
from spanwise.heads.seqner import SeqNer
from spanwise.heads.spanner import SpanNer
from spanwise.prediction.onnx.record import Chain, Record

# Their scores are tensor operations from end to end. What else there is decides in between, on the host.
HEADS = (SeqNer, SpanNer, Pointer, Biaffine, DeepSpan, PrunedSpan, LocateLabel)
NAMES = (
    "seqner, spanner, global-pointer, efficient-global-pointer, biaffine, shallow-span, deep-span, deep-span-pruned, "
    "locate-label"
)


def described(encoder: Encoder, head: Head, precision: Literal["float32", "int8"]) -> tuple[GraphEncoder, Record]:
    """The record of a model and its encoder; a ``SpanwiseError`` where it has no graph."""
    if not isinstance(encoder, GraphEncoder):
        raise SpanwiseError("several encoders together have no ONNX graph; a transformer has, and the static encoder")
    inner = head.inner
    if not isinstance(inner, HEADS):
        kind = head_values(inner)["kind"]
        raise SpanwiseError(f"a {kind} head has no ONNX graph; those of {NAMES} have, also as a bundle's branch")
    if getattr(inner.settings, "unit", "words") == "subwords":
        raise SpanwiseError("spans of subwords have no ONNX graph; train with head.unit=words")
    rows = encoder.rows if isinstance(encoder, TransformerEncoder) else None
    if rows is None and precision == "int8":
        raise SpanwiseError("8 bits are for transformer encoders; the static encoder's LSTMs stay in float32: leave out --int8")
    own = head.set_threshold(0.5)
    if own is not None:
        head.set_threshold(own)
    gives: Literal["spans", "fragments", "tags"] = "tags" if isinstance(inner, SeqNer) else "spans"
    return encoder, Record(
        gives="fragments" if isinstance(head, Discontinuous) else gives,
        precision=precision,
        entities=head.labels.entities,
        rows=None if rows is None else rows.settings,
        unknown_id=0 if rows is None else rows.tokenize.unknown_id,
        widths=_widths(inner),
        threshold=own,
        policy=inner.decoding,
        fragments=head.types if isinstance(head, Discontinuous) else (),
        chain=_chain(inner) if isinstance(inner, SeqNer) else None,
    )


def _widths(head: Head) -> tuple[int, ...]:
    """Those of the spans that ``Head.targets`` names for scoring."""
    if isinstance(head, SpanNer):
        return tuple(range(1, head.widest + 1))
    if isinstance(head, DeepSpan):
        return tuple(range(2, head.widest + 1))  # single words are always judged
    return tuple(head.settings.lengths or ()) if isinstance(head, LocateLabel) else ()


def _chain(head: SeqNer) -> Chain:
    if head.crf is not None:
        transitions, start, end = head.crf.bounded()
    else:
        transitions = head.allowed if head.settings.constrained else torch.zeros_like(head.allowed)
        start, end = transitions[0], torch.zeros_like(transitions[0])
    lists: list[Any] = [part.tolist() for part in (transitions, start, end)]
    return Chain(transitions=lists[0], start=lists[1], end=lists[2], is_crf=head.crf is not None)
