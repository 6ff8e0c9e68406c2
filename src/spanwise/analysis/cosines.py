"""How alike vectors are: within and between classes, and with those of spans that share words (DSpERT, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spanwise.core.iou import iou

Floats = npt.NDArray[np.float64]
# By the share of words in common; the paper's "weakly" are the second and third, its "strongly" the two behind them.
OVERLAPS = ("none", "up to 0.25", "0.25 to 0.5", "0.5 to 0.75", "above 0.75")
LEVELS = {"not overlapping": (0,), "weakly overlapping": (1, 2), "strongly overlapping": (3, 4)}


def units(vectors: npt.NDArray[Any]) -> Floats:
    """The vectors [n, d] with a length of 1; what has no length stays nothing.

    >>> units(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    vectors = vectors.astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


@dataclass(frozen=True)
class ClassCosines:
    """The mean cosine of all pairs of vectors of two classes, [classes, classes]; nan within a class of one vector."""

    classes: tuple[str, ...]
    means: Floats

    @property
    def within(self) -> Floats:
        return self.means.diagonal()

    def mean_within(self, classes: Sequence[str]) -> float | None:
        """The mean over the classes, each of the same weight, of those with two vectors or more."""
        return _mean([self.means[place, place] for place in self._places(classes)])

    def mean_between(self, some: Sequence[str], others: Sequence[str]) -> float | None:
        """The mean over pairs of different classes, one from either side."""
        pairs = {(x, y) for x in self._places(some) for y in self._places(others) if x != y}
        return _mean([self.means[pair] for pair in sorted({(min(pair), max(pair)) for pair in pairs})])

    def _places(self, classes: Sequence[str]) -> list[int]:
        return [self.classes.index(name) for name in classes if name in self.classes]


def class_cosines(vectors: Mapping[str, npt.NDArray[Any]]) -> ClassCosines:
    """Over all pairs, which need not be formed: sums of unit vectors multiply to sums of cosines.

    >>> both = class_cosines({"A": np.array([[1.0, 0.0], [0.0, 2.0]]), "B": np.array([[3.0, 0.0]])})
    >>> both.means.tolist()
    [[0.0, 0.5], [0.5, nan]]
    """
    every = {name: units(own) for name, own in vectors.items() if len(own)}
    sums = np.array([own.sum(0) for own in every.values()]).reshape(len(every), -1)
    counts = np.array([len(own) for own in every.values()], float)
    means = sums @ sums.T / np.outer(counts, counts)
    for place, own in enumerate(every.values()):
        pairs = counts[place] * (counts[place] - 1)
        itself = (own**2).sum()  # of each vector with itself
        means[place, place] = (sums[place] @ sums[place] - itself) / pairs if pairs else np.nan
    return ClassCosines(tuple(every), means)


def overlap_cosines(
    spans: npt.NDArray[np.int64], vectors: npt.NDArray[Any], entities: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Of every pair of an entity and another span of its sentence, the place among ``OVERLAPS`` and the cosine.

    The overlapping ratio of two spans is the number of words in both over that of words in either (section 5.1).
    """
    start, end = spans.T
    unit = units(vectors)
    rows = np.flatnonzero(entities)
    cosines = unit[rows] @ unit.T
    ratio = iou(start[rows, None], end[rows, None], start, end)
    others = rows[:, None] != np.arange(len(spans))
    level = np.where(ratio == 0, 0, np.searchsorted((0.25, 0.5, 0.75), ratio) + 1)
    return level[others], cosines[others]


def _mean(values: Sequence[float]) -> float | None:
    known = [float(value) for value in values if not np.isnan(value)]
    return sum(known) / len(known) if known else None
