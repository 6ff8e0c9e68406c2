"""Boundary smoothing: part of a gold span's probability is given to neighbouring spans (Zhu and Li 2022; DSpERT, section 3).

A gold span keeps 1 - epsilon. For each distance d up to D, the 4d spans whose boundaries differ from
it by d words in total share epsilon / D. The share of spans that do not exist returns to the gold
span. If a span receives more than 1 from several gold spans, its probabilities are scaled to sum to
1; the remaining probability of a span is that of NONE.

Without smoothing the same rule defines the targets of a span with two gold types: one half each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class SoftSpans(NamedTuple):
    """The spans of a sentence with some probability of an entity type, one row per span and type, in text order."""

    start: Ints
    end: Ints
    label: Ints
    mass: Floats

    def select(self, rows: npt.NDArray[np.bool_]) -> SoftSpans:
        """The rows where a mask is True."""
        return SoftSpans(self.start[rows], self.end[rows], self.label[rows], self.mass[rows])


def smooth_boundaries(
    gold: Sequence[Ints], lengths: Sequence[int], max_width: int | None, epsilon: float, distance: int,
    is_known: Callable[[Ints, Ints, Ints, Ints], npt.NDArray[np.bool_]] | None = None,
) -> list[SoftSpans]:  # fmt: skip
    """Smooth the reachable ``gold`` [n, 3] (start, end, label) of each sentence of ``lengths`` words.

    Spans for which ``is_known`` (of sentence indices, starts, ends and labels) is False count as spans that
    do not exist. All sentences are smoothed in a few array operations.

    >>> (spans,) = smooth_boundaries([np.array([[0, 1, 7]])], [2], max_width=None, epsilon=0.1, distance=1)
    >>> [(int(s), int(e), round(float(m), 4)) for s, e, _, m in zip(*spans)]
    [(0, 1, 0.975), (0, 2, 0.025)]
    """
    sentence = np.repeat(np.arange(len(gold)), [len(rows) for rows in gold])
    rows = np.column_stack((sentence, np.concatenate([*gold, np.empty((0, 3), np.int64)])))
    moves = [move for d in range(1, distance + 1) for move in _at_distance(d)] if epsilon else []
    steps = np.array([(0, *move, 0) for move in moves], np.int64).reshape(-1, 4)
    share = np.broadcast_to(epsilon / (4 * np.abs(steps).sum(1) * distance), (len(rows), len(steps)))
    neighbours = rows[:, None] + steps
    index, start, end, label = np.moveaxis(neighbours, 2, 0)
    length = np.array(lengths, np.int64)[index]
    is_valid = (start >= 0) & (start < end) & (end <= length)
    if max_width is not None:
        is_valid &= end - start <= max_width
    if is_known is not None:
        is_valid &= is_known(index, start.clip(0, length - 1), end, label)
    remaining = 1 - np.where(is_valid, share, 0.0).sum(1)
    keys, mass = _sum_rows(np.concatenate((rows, neighbours[is_valid])), np.concatenate((remaining, share[is_valid])))
    cuts = np.searchsorted(keys[0], np.arange(len(gold) + 1)).tolist()
    columns = (*keys[1:], mass)
    return [SoftSpans(*(column[first:last] for column in columns)) for first, last in pairwise(cuts)]


def sum_masses(rows: Ints, masses: npt.NDArray[np.float64], *, has_one_type: bool = True) -> SoftSpans:
    """Add the masses of equal ``rows`` [n, 3] (start, end, label) and sort the rows.

    If a span has one type, the masses of a span are scaled to sum to at most 1; otherwise each is at most 1.

    >>> spans = sum_masses(np.array([[2, 3, 0], [0, 1, 1], [2, 3, 0]]), np.array([0.25, 1.0, 0.5]))
    >>> [(int(s), int(e), int(l), float(m)) for s, e, l, m in zip(*spans)]
    [(0, 1, 1, 1.0), (2, 3, 0, 0.75)]
    """
    (start, end, label), mass = _sum_rows(rows, masses, has_one_type=has_one_type)
    return SoftSpans(start, end, label, mass)


def _sum_rows(rows: Ints, masses: npt.NDArray[np.float64], *, has_one_type: bool = True) -> tuple[Ints, Floats]:
    """``sum_masses`` of rows whose last column is the label: the columns of the distinct rows, and their masses."""
    order = np.lexsort(rows.T[::-1])
    keys, masses = rows[order], masses[order]
    # Whether a row differs from the one before it in a column or an earlier one.
    is_new = np.logical_or.accumulate(np.diff(keys, axis=0, prepend=keys[:1] - 1) != 0, axis=1)
    mass = np.bincount(is_new[:, -1].cumsum() - 1, masses)
    keys, is_new = keys[is_new[:, -1]], is_new[is_new[:, -1]]
    if has_one_type:
        span = is_new[:, -2].cumsum() - 1
        mass = mass / np.maximum(np.bincount(span, mass), 1.0)[span]
    return np.ascontiguousarray(keys.T), np.minimum(mass, 1.0).astype(np.float32)


def _at_distance(d: int) -> list[tuple[int, int]]:
    """The 4d ways to move two boundaries by d words in total.

    >>> _at_distance(1)
    [(-1, 0), (0, -1), (0, 1), (1, 0)]
    """
    return [(s, e) for s in range(-d, d + 1) for e in sorted({abs(s) - d, d - abs(s)})]


def soft_cross_entropy(
    logits: Tensor, index: Tensor, label: Tensor, mass: Tensor, open_masses: Tensor | None = None,
    row_masses: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Cross-entropy with soft targets per cell: ``logits`` [N, C + 1, K] (NONE last) to [N, K] in float32.

    Gold is given as rows: the cell with flat ``index`` (of N x K) has class ``label`` with probability
    ``mass``, and NONE with the remaining probability. Cells without a row are NONE, so no dense
    target matrix is needed.

    ``open_masses`` [N, C, K] are the log-probabilities that an entity of a class has no mark
    (``spanwise.losses.partial``): a cell is then NONE or one of these entities. ``row_masses`` [rows, C]
    are those of the classes that a row may have instead of its label, and 0 for the label.

    >>> import torch
    >>> logits = torch.tensor([[[2.0, 0.0], [1.0, 0.0]]])
    >>> soft_cross_entropy(logits, torch.tensor([0]), torch.tensor([0]), torch.tensor([0.9])).round(decimals=4)
    tensor([[0.4133, 0.6931]])
    """
    _, classes, cells = logits.shape
    logits = logits.float()
    first = index // cells * (classes * cells) + index % cells
    flat = logits.reshape(-1)
    if open_masses is None:
        none, gold_none = logits[:, -1], flat.index_select(0, first + (classes - 1) * cells)
    else:
        none = torch.cat((logits[:, :-1] + open_masses, logits[:, -1:]), 1).logsumexp(1)
        gold_none = none.reshape(-1).index_select(0, index)
    if row_masses is None:
        gold = flat.index_select(0, first + label * cells)
    else:
        rows = first.unsqueeze(1) + torch.arange(0, (classes - 1) * cells, cells, device=first.device)
        gold = (flat.index_select(0, rows.view(-1)).view_as(row_masses) + row_masses).logsumexp(1)
    gain = gold - gold_none
    values = logits.logsumexp(1) - none
    return values.reshape(-1).index_add(0, index, -mass * gain).view_as(values)
