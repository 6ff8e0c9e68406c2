"""Matching spans with the gold spans that they overlap most (Locate and Label, section 2.2)."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from spanwise.core.iou import iou


class PackedSpans(NamedTuple):
    """Packed spans on the device: three tensors of equal length."""

    sentence: Tensor
    start: Tensor
    end: Tensor


class Matches(NamedTuple):
    """The best match of each span: the overlap (IoU), the index among all B x G gold spans, and the boundaries."""

    overlap: Tensor
    gold_index: Tensor
    start: Tensor
    end: Tensor


def match_spans(spans: PackedSpans, gold: Tensor) -> Matches:
    """Match each span with the gold span that it overlaps most; ``gold`` is [B, G, 2], padded with (0, 0).

    >>> from torch import tensor
    >>> matches = match_spans(PackedSpans(tensor([0, 0]), tensor([0, 2]), tensor([2, 5])), tensor([[[0, 1], [2, 6]]]))
    >>> matches.overlap, matches.gold_index, matches.end
    (tensor([0.5000, 0.7500]), tensor([0, 1]), tensor([1, 6]))
    """
    starts, ends = gold.index_select(0, spans.sentence).unbind(2)
    overlap, best = iou(spans.start.unsqueeze(1), spans.end.unsqueeze(1), starts, ends).max(1)
    index = spans.sentence * gold.shape[1] + best
    return Matches(overlap, index, *gold.flatten(0, 1).index_select(0, index).unbind(1))
