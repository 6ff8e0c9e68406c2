"""Sentences as rows of subwords, and where in the rows of a batch each word's subwords stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

NONE: Ints = np.zeros(0, np.int64)
DEEP = 16  # a word of more subwords (a link, a sequence of bases) is pooled apart: the table of all words need not be as deep


@dataclass(slots=True)
class Subwords:
    """A sentence as the encoder reads it: one or more rows of subword ids, and where each of its own subwords stands."""

    rows: list[Ints]
    row: Ints  # of each subword of the sentence
    place: Ints  # in that row, special tokens counted
    counts: Ints  # subwords per word


def padded(rows: Sequence[Ints], length: int, padding: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The rows below one another, and where they are real."""
    lengths = np.array([len(row) for row in rows], np.int64)
    seen = np.arange(length) < lengths[:, None]
    ids = np.full(seen.shape, padding, np.int64)
    ids[seen] = np.concatenate(rows)
    return ids, seen


def word_index(prepared: Sequence[Subwords], length: int, only_first: bool) -> dict[str, npt.NDArray[Any]]:
    """The subwords of every word as places in the batch's rows of ``length``, laid end to end.

    ``index`` [B, T, depth] names them, ``counts`` [B, T] how many there are, ``mask`` [B, T] where a word is. A word with
    fewer than the deepest repeats its last one: no maximum changes, and a mean knows the count. Words of more than ``DEEP``
    have all their subwords in ``deep`` [n, depth], and their place among the B x T words in ``deep_words`` [n].
    """
    size = max(max(len(item.counts) for item in prepared), 1)
    deepest = 1 if only_first else max(int(item.counts.max(initial=1)) for item in prepared)
    depth = min(deepest, DEEP)
    index = np.zeros((len(prepared), size, depth), np.int64)
    counts = np.ones((len(prepared), size), np.int64)
    mask = np.zeros((len(prepared), size), bool)
    deep: list[Ints] = []
    first_row = 0
    for number, item in enumerate(prepared):
        total = len(item.counts)
        if total:
            flat = (first_row + item.row) * length + item.place
            firsts = np.cumsum(item.counts) - item.counts
            index[number, :total] = flat[_steps(firsts, item.counts, depth)]
            counts[number, :total] = item.counts
            mask[number, :total] = True
            if deepest > DEEP:
                long = item.counts > DEEP
                deep.append(flat[_steps(firsts[long], item.counts[long], deepest)])
        first_row += len(item.rows)
    arrays = {"index": index, "counts": counts, "mask": mask}
    if deep:
        arrays |= {"deep": np.concatenate(deep), "deep_words": np.flatnonzero((counts > DEEP) & mask)}
    return arrays


def _steps(firsts: Ints, counts: Ints, depth: int) -> Ints:
    steps: Ints = firsts[:, None] + np.minimum(np.arange(depth), counts[:, None] - 1)
    return steps
