"""Boundary smoothing (Zhu and Li 2022, used by DSpERT, section 3): some of a gold span's probability goes to its neighbours.

A gold span keeps 1 - epsilon; the 4d spans whose boundaries differ from it by d words in all share epsilon / D, for each
distance d up to D. What would go to spans that do not exist goes back to the gold span. A span that several gold spans give
more than 1 in all has it scaled to 1; what is left of a span's probability is NONE.

The same rule without smoothing settles what a head with one class per span learns of a span with two gold types: half each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class SoftSpans(NamedTuple):
    """The spans of a sentence that are not wholly NONE, one row per span and label, in text order."""

    start: Ints
    end: Ints
    label: Ints
    mass: Floats


def smoothed(gold: Ints, length: int, max_width: int | None, epsilon: float, distance: int) -> SoftSpans:
    """What ``gold`` [n, 3] (start, end, label; in reach) of a sentence of ``length`` words becomes.

    >>> spans = smoothed(np.array([[0, 1, 7]]), length=2, max_width=None, epsilon=0.1, distance=1)
    >>> [(int(s), int(e), round(float(m), 4)) for s, e, _, m in zip(*spans)]
    [(0, 1, 0.975), (0, 2, 0.025)]
    """
    widest = length if max_width is None else max_width
    moves = [move for d in range(1, distance + 1) for move in _at_distance(d)] if epsilon else []
    steps = np.array(moves, np.int64).reshape(-1, 2)
    share = epsilon / (4 * np.abs(steps).sum(1) * distance)
    start, end = (gold[:, None, side] + steps[:, side] for side in (0, 1))
    exists = (start >= 0) & (start < end) & (end <= length) & (end - start <= widest)
    kept = 1 - np.where(exists, share, 0.0).sum(1)
    rows = np.concatenate((gold, np.stack((start, end, np.broadcast_to(gold[:, None, 2], start.shape)), -1)[exists]))
    masses = np.concatenate((kept, np.broadcast_to(share, start.shape)[exists]))
    keys, place = np.unique(rows, axis=0, return_inverse=True)
    mass = np.bincount(place.reshape(-1), masses, len(keys))
    _, span = np.unique(keys[:, :2], axis=0, return_inverse=True)
    of_span = np.maximum(np.bincount(span.reshape(-1), mass, len(keys)), 1.0)
    return SoftSpans(keys[:, 0], keys[:, 1], keys[:, 2], (mass / of_span[span.reshape(-1)]).astype(np.float32))


def _at_distance(d: int) -> list[tuple[int, int]]:
    """The 4d ways to move two boundaries by d words in all.

    >>> _at_distance(1)
    [(-1, 0), (0, -1), (0, 1), (1, 0)]
    """
    return [(s, e) for s in range(-d, d + 1) for e in sorted({abs(s) - d, d - abs(s)})]


def soft_cross_entropy(logits: Tensor, place: Tensor, label: Tensor, mass: Tensor) -> Tensor:
    """Cross-entropy of every cell with its soft classes: ``logits`` [N, C + 1, K] (NONE last) to [N, K] in float32.

    Gold are rows: the cell at flat ``place`` (of N x K) has the class ``label`` with probability ``mass``, and NONE with what
    is left. Cells without a row are NONE, so no matrix of classes is made.

    >>> import torch
    >>> logits = torch.tensor([[[2.0, 0.0], [1.0, 0.0]]])
    >>> soft_cross_entropy(logits, torch.tensor([0]), torch.tensor([0]), torch.tensor([0.9])).round(decimals=4)
    tensor([[0.4133, 0.6931]])
    """
    _, classes, cells = logits.shape
    logits = logits.float()
    none = logits[:, -1]
    first = place // cells * (classes * cells) + place % cells
    flat = logits.reshape(-1)
    gain = flat.index_select(0, first + label * cells) - flat.index_select(0, first + (classes - 1) * cells)
    values = logits.logsumexp(1) - none
    return values.reshape(-1).index_add(0, place, -mass * gain).view_as(values)
