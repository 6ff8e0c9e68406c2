"""Packed results of heads: scored spans, pairs of them, and a vector per span."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
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
    and ``score`` is between 0 and 1. ``pairs`` are relations between the spans. ``log_odds`` orders
    spans of equal score: probabilities near 1 are all rounded to 1.
    """

    sentence: Tensor
    start: Tensor
    end: Tensor
    label: Tensor
    score: Tensor
    pairs: ScoredPairs | None = field(default=None, kw_only=True)
    log_odds: Tensor | None = field(default=None, kw_only=True)

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


def class_log_odds(logits: Tensor, label: Tensor) -> Tensor:
    """The log-odds of one class against all others, exact even if its probability is rounded to 1.

    ``logits`` [S, C] are those of a softmax, ``label`` [S] is the class.

    >>> class_log_odds(torch.tensor([[40.0, 1.0, 1.0], [0.0, 2.0, 0.0]]), torch.tensor([0, 1]))
    tensor([38.3069,  1.3069])
    """
    column = label.unsqueeze(1)
    others = logits.scatter(1, column, torch.finfo(logits.dtype).min).logsumexp(1)
    return logits.gather(1, column).squeeze(1) - others
