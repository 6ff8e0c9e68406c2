"""Sentences as rows of subword ids, and the positions of each word's subwords in a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

NO_SUBWORDS: Ints = np.zeros(0, np.int64)
DEEP = 16  # words with more subwords (links, DNA sequences) have their own table, so that the other table stays narrow


@dataclass(slots=True)
class Subwords:
    """A sentence as the encoder reads it: one or more rows of subword ids, and the position of each of its subwords."""

    rows: list[Ints]
    row: Ints  # of each subword of the sentence
    column: Ints  # of each subword, counting special tokens
    counts: Ints  # subwords per word


def padded(rows: Sequence[Ints], length: int, padding: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The rows as one padded array, and its mask."""
    lengths = np.array([len(row) for row in rows], np.int64)
    mask = np.arange(length) < lengths[:, None]
    ids = np.full(mask.shape, padding, np.int64)
    ids[mask] = np.concatenate(rows)
    return ids, mask


def word_index(prepared: Sequence[Subwords], length: int, only_first: bool) -> dict[str, npt.NDArray[Any]]:
    """The subwords of every word as positions in the batch's rows of ``length``, flattened.

    ``first`` [B, T] is the first subword of each word, ``mask`` [B, T] is true for words. Words of
    several subwords are the minority; all their subwords are in a separate table, ``several``
    [n, depth] or, for more than ``DEEP`` subwords, ``deep`` [m, depth]. Rows are padded with the
    word's last subword: this does not change a maximum, and a mean uses the counts,
    ``several_counts`` [n]. ``several_words`` [n] are the positions of these words in B x T.
    """
    lengths = np.array([len(item.counts) for item in prepared], np.int64)
    mask = np.arange(max(lengths.max(), 1)) < lengths[:, None]
    counts = np.concatenate([item.counts for item in prepared])
    first_row = np.cumsum([0, *(len(item.rows) for item in prepared[:-1])])
    row = np.concatenate([item.row for item in prepared]) + np.repeat(first_row, [len(item.row) for item in prepared])
    positions = row * length + np.concatenate([item.column for item in prepared])
    firsts = np.cumsum(counts) - counts
    first = np.zeros(mask.shape, np.int64)
    first[mask] = positions[firsts]
    arrays: dict[str, npt.NDArray[Any]] = {"first": first, "mask": mask}
    if only_first:
        return arrays
    for name, selected in (("several", (counts > 1) & (counts <= DEEP)), ("deep", counts > DEEP)):
        if selected.any():
            depths = counts[selected]
            steps = np.minimum(np.arange(depths.max()), depths[:, None] - 1)
            arrays[name] = positions[firsts[selected, None] + steps]
            arrays[f"{name}_counts"] = depths
            arrays[f"{name}_words"] = np.flatnonzero(mask)[selected]
    return arrays
