"""Which gold span a span is paired with: the one that it overlaps most (Locate and Label, section 2.2)."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from spanwise.core.iou import iou


class PackedSpans(NamedTuple):
    """Packed spans on the device: three tensors of one length."""

    sentence: Tensor
    start: Tensor
    end: Tensor


class Matches(NamedTuple):
    """Of each span, the best overlap with a gold span, the place of that one among all B x G, and its boundaries."""

    overlap: Tensor
    place: Tensor
    start: Tensor
    end: Tensor


def matched(spans: PackedSpans, gold: Tensor) -> Matches:
    """The gold spans of a batch, ``gold`` [B, G, 2] with (0, 0) where a sentence has fewer, that spans overlap most.

    >>> from torch import tensor
    >>> found = matched(PackedSpans(tensor([0, 0]), tensor([0, 2]), tensor([2, 5])), tensor([[[0, 1], [2, 6]]]))
    >>> found.overlap, found.place, found.end
    (tensor([0.5000, 0.7500]), tensor([0, 1]), tensor([1, 6]))
    """
    starts, ends = gold.index_select(0, spans.sentence).unbind(2)
    overlap, best = iou(spans.start.unsqueeze(1), spans.end.unsqueeze(1), starts, ends).max(1)
    place = spans.sentence * gold.shape[1] + best
    return Matches(overlap, place, *gold.flatten(0, 1).index_select(0, place).unbind(1))
