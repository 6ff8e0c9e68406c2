"""Soft non-maximum suppression of scored spans (Bodla et al. 2017; Locate and Label, section 2.6). NumPy only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spanwise.core.iou import iou

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Packed: TypeAlias = tuple[Ints, Ints, Ints, Ints, Floats]  # sentence, start, end, label, score


@dataclass(frozen=True, slots=True)
class SoftNms:
    """Lower the score of a span for every better one that it overlaps much, then keep what is above ``threshold``.

    Algorithm 1: the best span comes first; those whose overlap with it is at least ``overlap`` have their scores multiplied
    by ``decay`` (1: soft-NMS is off), and so on with the best of the rest. The same span with the same label counts once, with
    its best score. What is left is read as ``policy`` says: "overlapping", "nested" or "flat".

    ``counts_duplicates`` and ``drops_crossing`` are what the authors' program does besides: a span found n times has n times
    its score, and of two spans that cross, neither is kept.

    >>> spans = [np.array(x) for x in ([0, 0, 0], [0, 0, 4], [4, 5, 5], [0, 0, 1])]
    >>> SoftNms(decay=0.5, overlap=0.7, threshold=0.4)(*spans, np.array([0.9, 0.7, 0.6]))[1:3]
    (array([0, 4]), array([4, 5]))
    """

    decay: float
    overlap: float
    threshold: float
    policy: str = "overlapping"
    counts_duplicates: bool = False
    drops_crossing: bool = False

    def __call__(self, sentence: Ints, start: Ints, end: Ints, label: Ints, score: Floats) -> Packed:
        """The packed spans that remain, in text order, with their new scores."""
        sentence, start, end, label, score = self._merged(sentence, start, end, label, score)
        # A span this low only ever lowers others that are no higher: it can go at once.
        sentence, start, end, label, score = _chosen(score > self.threshold, sentence, start, end, label, score)
        if not len(sentence):
            return sentence, start, end, label, score
        # Side by side: a row per sentence, its spans in the columns, filled up with a place before the sentence.
        _, row, counts = np.unique(sentence, return_inverse=True, return_counts=True)
        place = row, np.arange(len(row)) - (counts.cumsum() - counts)[row]
        shape = len(counts), counts.max()
        starts, ends, scores = np.full(shape, -1), np.zeros(shape, np.int64), np.zeros(shape)
        starts[place], ends[place], scores[place] = start, end, score
        score = suppressed(starts, ends, scores, self.decay, self.overlap)[place].astype(score.dtype)
        kept = score > self.threshold
        if self.drops_crossing:
            starts[place], ends[place] = np.where(kept, start, -1), np.where(kept, end, 0)
            kept &= ~_crossing(starts, ends)[place]
        return _chosen(kept, sentence, start, end, label, np.minimum(score, 1))

    def _merged(self, sentence: Ints, start: Ints, end: Ints, label: Ints, score: Floats) -> Packed:
        rows = np.stack((sentence, start, end, label))
        found, which, times = np.unique(rows, axis=1, return_inverse=True, return_counts=True)
        best = np.zeros(found.shape[1], score.dtype)
        np.maximum.at(best, which.reshape(-1), score)
        return found[0], found[1], found[2], found[3], best * times.astype(score.dtype) if self.counts_duplicates else best


def suppressed(start: Ints, end: Ints, score: Floats, decay: float, overlap: float) -> Floats:
    """The scores behind Algorithm 1 of many sentences at once, [rows, spans] each; where a score is 0 there is no span."""
    near = (iou(start[:, :, None], end[:, :, None], start[:, None], end[:, None]) >= overlap) & (score[:, None] > 0)
    if decay == 1 or not np.triu(near, 1).any():
        return score
    rows = np.arange(len(score))
    open_, final = np.where(score > 0, score, -1.0), score.copy()
    for _ in range(score.shape[1]):
        best = open_.argmax(1)
        value = open_[rows, best]
        final[rows, best] = np.where(value > 0, value, final[rows, best])
        open_ *= np.where(near[rows, best], decay, 1.0)
        open_[rows, best] = -1.0
    return final


def _crossing(start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
    """Whether a span crosses another of its row."""
    one, other = (start[:, :, None], end[:, :, None]), (start[:, None], end[:, None])
    crosses = (one[0] < other[0]) & (other[0] < one[1]) & (one[1] < other[1])
    some: npt.NDArray[np.bool_] = np.any(crosses | crosses.transpose(0, 2, 1), axis=2)
    return some


def _chosen(kept: npt.NDArray[np.bool_], sentence: Ints, start: Ints, end: Ints, label: Ints, score: Floats) -> Packed:
    return sentence[kept], start[kept], end[kept], label[kept], score[kept]
