"""Packed results of heads: scored spans, pairs of them, and a vector per span."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(slots=True)
class ScoredPairs:
    """Scored pairs of spans, packed; ``first`` and ``second`` are indices into ``ScoredSpans``.

    ``score`` is between 0 and 1.
    """

    first: Tensor
    second: Tensor
    label: Tensor
    score: Tensor


@dataclass(slots=True)
class ScoredSpans:
    """Candidate entities of a batch, packed: five tensors of one length.

    ``start`` and ``end`` are half-open word ranges, ``label`` is an index into ``Labels.entities``
    and ``score`` is between 0 and 1. ``pairs`` are relations between the spans.
    """

    sentence: Tensor
    start: Tensor
    end: Tensor
    label: Tensor
    score: Tensor
    pairs: ScoredPairs | None = field(default=None, kw_only=True)

    @property
    def columns(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.sentence, self.start, self.end, self.label, self.score


@dataclass(slots=True)
class SpanVectors:
    """Spans of a batch, packed, and a vector [S, d] for each."""

    sentence: Tensor
    start: Tensor
    end: Tensor
    vectors: Tensor
