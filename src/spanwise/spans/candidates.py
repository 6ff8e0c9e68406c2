"""Packed candidate spans of a batch: sentence, start and end per span, half-open. NumPy only; runs on the host.

All functions use a grid ``[B, T, W]`` over the batch: cell (b, t, w) is the span of w + 1 words that
starts at word t of sentence b. Masks on that grid replace loops over spans.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Spans(NamedTuple):
    """Packed spans: three int64 arrays of equal length."""

    sentence: Ints
    start: Ints
    end: Ints


def grid(lengths: Ints, width: int) -> npt.NDArray[np.bool_]:
    """The mask of grid cells that are spans inside their sentences; ``lengths`` are the sentences' numbers of words."""
    longest = int(lengths.max(initial=0))
    ends = np.arange(longest)[:, None] + np.arange(1, min(width, longest) + 1)
    inside: npt.NDArray[np.bool_] = ends <= lengths[:, None, None]
    return inside


def packed(cells: npt.NDArray[np.bool_]) -> Spans:
    """The spans of the true cells, ordered by sentence, start and end.

    >>> spans = packed(grid(np.array([3, 1]), 2))
    >>> list(zip(*(column.tolist() for column in spans)))
    [(0, 0, 1), (0, 0, 2), (0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 0, 1)]
    """
    sentence, start, width = np.nonzero(cells)
    return Spans(sentence, start, start + width + 1)


def sample_negatives(
    lengths: Ints, width: int, gold: Spans, count: int, generator: np.random.Generator,
    candidates: npt.NDArray[np.bool_] | None = None,
) -> Spans:  # fmt: skip
    """Sample up to ``count`` spans per sentence that are not gold, of at most ``width`` words, without replacement.

    Every cell gets a random key, and the cells with the ``count`` smallest keys of a sentence are its
    sample. Gold spans wider than ``width`` have no cell and are ignored. ``candidates`` is a mask of the
    grid; by default, all of its spans are sampled from.

    >>> gold = Spans(np.array([0]), np.array([1]), np.array([3]))
    >>> [column.tolist() for column in sample_negatives(np.array([3]), 2, gold, 100, np.random.default_rng(0))]
    [[0, 0, 0, 0], [0, 0, 1, 2], [1, 2, 2, 3]]
    """
    is_negative = grid(lengths, width) if candidates is None else candidates.copy()
    widths = gold.end - gold.start
    has_cell = widths <= width
    is_negative[gold.sentence[has_cell], gold.start[has_cell], widths[has_cell] - 1] = False
    cells = is_negative.reshape(len(is_negative), is_negative.shape[1] * is_negative.shape[2])
    if cells.shape[1] > count:
        keys = generator.random(cells.shape)
        keys[~cells] = 2.0  # larger than every key of a negative
        bound = np.partition(keys, count, axis=1)[:, count, None]  # the smallest key that is not sampled
        cells = keys < np.minimum(bound, 1.0)
    return packed(cells.reshape(is_negative.shape))
