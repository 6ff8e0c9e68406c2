"""Soft non-maximum suppression (Bodla et al. 2017; Locate and Label, section 2.6). NumPy only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spanwise.core.iou import iou

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]
MAX_PAIRS = 1 << 21  # of spans that are compared at once, in a few tens of MB
Packed: TypeAlias = tuple[Ints, Ints, Ints, Ints, Floats]  # sentence, start, end, label, score


@dataclass(frozen=True, slots=True)
class SoftNms:
    """Lower the scores of spans that overlap a better one, then apply ``threshold``.

    Algorithm 1: take the best span, multiply the scores of all spans whose overlap (IoU) with it is
    at least ``overlap`` by ``decay`` (1 turns soft-NMS off), and repeat with the best remaining
    span. A span with the same label counts once, with its best score. ``policy`` ("overlapping",
    "nested" or "flat") decodes the remaining spans.

    ``counts_duplicates`` and ``drops_crossing`` reproduce the authors' code: n copies of a span
    multiply its score by n, and two spans that cross are both dropped.

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
        """Return the remaining packed spans in text order, with their new scores."""
        return self.suppress(sentence, start, end, label, score, np.zeros_like(score))[:5]

    def suppress(
        self, sentence: Ints, start: Ints, end: Ints, label: Ints, score: Floats, log_odds: Floats
    ) -> tuple[Ints, Ints, Ints, Ints, Floats, Floats]:
        """The same with log-odds: of spans with equal scores, the one with the highest is taken first."""
        spans = self._merge(sentence, start, end, label, score, log_odds)
        # Spans below the threshold lower only spans that are also below it, so they can be dropped first.
        sentence, start, end, label, score, log_odds = _select(spans[4] > self.threshold, *spans)
        if not len(sentence):
            return sentence, start, end, label, score, log_odds
        # Pad to a row per sentence and a column per span, those with the highest log-odds first; padding has start -1
        # and score 0.
        _, row, counts = np.unique(sentence, return_inverse=True, return_counts=True)
        column = np.empty(len(row), np.int64)
        order = np.lexsort((-log_odds, row))
        column[order] = np.arange(len(row)) - (counts.cumsum() - counts)[row]
        cell = row, column
        shape = len(counts), counts.max()
        starts, ends, scores = np.full(shape, -1), np.zeros(shape, np.int64), np.zeros(shape)
        starts[cell], ends[cell], scores[cell] = start, end, score
        score = suppress_scores(starts, ends, scores, self.decay, self.overlap)[cell].astype(score.dtype)
        mask = score > self.threshold
        if self.drops_crossing:
            starts[cell], ends[cell] = np.where(mask, start, -1), np.where(mask, end, 0)
            mask &= ~_crossing(starts, ends)[cell]
        return _select(mask, sentence, start, end, label, np.minimum(score, 1), log_odds)

    def _merge(
        self, sentence: Ints, start: Ints, end: Ints, label: Ints, score: Floats, log_odds: Floats
    ) -> tuple[Ints, Ints, Ints, Ints, Floats, Floats]:
        """Merge duplicates of a span and label."""
        rows = np.stack((sentence, start, end, label))
        distinct, inverse = np.unique(rows, axis=1, return_inverse=True)
        inverse = inverse.reshape(-1)
        best, best_odds = np.zeros(distinct.shape[1], score.dtype), np.full(distinct.shape[1], -np.inf, log_odds.dtype)
        np.maximum.at(best, inverse, score)
        np.maximum.at(best_odds, inverse, log_odds)
        if self.counts_duplicates:  # a score of 0 marks a span that the head dropped
            best = best * np.bincount(inverse, score > 0, len(best)).astype(score.dtype)
        return distinct[0], distinct[1], distinct[2], distinct[3], best, best_odds


def suppress_scores(start: Ints, end: Ints, score: Floats, decay: float, overlap: float) -> Floats:
    """Apply Algorithm 1 to padded sentences, [rows, spans] each; a score of 0 marks padding."""
    if decay == 1:
        return score
    all_near = None  # of few spans, all pairs are compared at once; often none is near
    if len(score) * score.shape[1] ** 2 <= MAX_PAIRS:
        all_near = (iou(start[:, :, None], end[:, :, None], start[:, None], end[:, None]) >= overlap) & (score[:, None] > 0)
        if not np.triu(all_near, 1).any():
            return score
    rows = np.arange(len(score))
    remaining, final = np.where(score > 0, score, -1.0), score.copy()
    for _ in range(score.shape[1]):
        best = remaining.argmax(1)
        value = remaining[rows, best]
        final[rows, best] = np.where(value > 0, value, final[rows, best])
        if all_near is not None:
            near = all_near[rows, best]
        else:
            near = iou(start[rows, best, None], end[rows, best, None], start, end) >= overlap
        remaining *= np.where(near, decay, 1.0)
        remaining[rows, best] = -1.0
    return final


def _crossing(start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
    """Whether each span crosses another of its row."""
    one, other = (start[:, :, None], end[:, :, None]), (start[:, None], end[:, None])
    crosses = (one[0] < other[0]) & (other[0] < one[1]) & (one[1] < other[1])
    crosses_any: npt.NDArray[np.bool_] = np.any(crosses | crosses.transpose(0, 2, 1), axis=2)
    return crosses_any


def _select(
    mask: npt.NDArray[np.bool_], sentence: Ints, start: Ints, end: Ints, label: Ints, score: Floats, log_odds: Floats
) -> tuple[Ints, Ints, Ints, Ints, Floats, Floats]:
    return sentence[mask], start[mask], end[mask], label[mask], score[mask], log_odds[mask]
