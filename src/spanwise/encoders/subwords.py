"""Sentences as rows of subwords, and where in the rows of a batch each word's subwords stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

NONE: Ints = np.zeros(0, np.int64)
DEEP = 16  # a word of more subwords (a link, a sequence of bases) is pooled apart: the table of the others need not be as deep


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

    ``first`` [B, T] names each word's first subword, ``mask`` [B, T] says where a word is. Words of several subwords are the
    smaller part; all of theirs are in a table apart, ``several`` [n, depth], or, of more than ``DEEP``, in ``deep`` [m, depth].
    There a word with fewer than the deepest repeats its last one: no maximum changes, and a mean knows the counts, which are
    in ``several_counts`` [n]. ``several_words`` [n] are the places of these words among the B x T.
    """
    totals = np.array([len(item.counts) for item in prepared], np.int64)
    mask = np.arange(max(totals.max(), 1)) < totals[:, None]
    counts = np.concatenate([item.counts for item in prepared])
    first_row = np.cumsum([0, *(len(item.rows) for item in prepared[:-1])])
    row = np.concatenate([item.row for item in prepared]) + np.repeat(first_row, [len(item.row) for item in prepared])
    places = row * length + np.concatenate([item.place for item in prepared])
    firsts = np.cumsum(counts) - counts
    first = np.zeros(mask.shape, np.int64)
    first[mask] = places[firsts]
    arrays: dict[str, npt.NDArray[Any]] = {"first": first, "mask": mask}
    if only_first:
        return arrays
    for name, chosen in (("several", (counts > 1) & (counts <= DEEP)), ("deep", counts > DEEP)):
        if chosen.any():
            depths = counts[chosen]
            steps = np.minimum(np.arange(depths.max()), depths[:, None] - 1)
            arrays[name] = places[firsts[chosen, None] + steps]
            arrays[f"{name}_counts"] = depths
            arrays[f"{name}_words"] = np.flatnonzero(mask)[chosen]
    return arrays
