"""Cosine similarities of vectors within and between classes, and of overlapping spans (DSpERT, section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spanwise.core.iou import iou

Floats = npt.NDArray[np.float64]
# Ranges of the overlap ratio of two spans. The paper calls the second and third weak, the last two strong overlap.
OVERLAPS = ("none", "up to 0.25", "0.25 to 0.5", "0.5 to 0.75", "above 0.75")
LEVELS = {"no overlap": (0,), "weak overlap": (1, 2), "strong overlap": (3, 4)}


def unit_vectors(vectors: npt.NDArray[Any]) -> Floats:
    """Scale vectors [n, d] to length 1; zero vectors stay zero.

    >>> unit_vectors(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    vectors = vectors.astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


@dataclass(frozen=True)
class ClassCosines:
    """Mean cosine over all pairs of vectors of two classes, [classes, classes].

    The diagonal is nan for a class with a single vector.
    """

    classes: tuple[str, ...]
    means: Floats

    @property
    def within(self) -> Floats:
        return self.means.diagonal()

    def mean_within(self, classes: Sequence[str]) -> float | None:
        """Return the unweighted mean over the classes with at least two vectors."""
        return _mean([self.means[index, index] for index in self._indices(classes)])

    def mean_between(self, first: Sequence[str], second: Sequence[str]) -> float | None:
        """Return the mean over pairs of different classes, one from each side."""
        pairs = {(x, y) for x in self._indices(first) for y in self._indices(second) if x != y}
        return _mean([self.means[pair] for pair in sorted({(min(pair), max(pair)) for pair in pairs})])

    def _indices(self, classes: Sequence[str]) -> list[int]:
        return [self.classes.index(name) for name in classes if name in self.classes]


def class_cosines(vectors: Mapping[str, npt.NDArray[Any]]) -> ClassCosines:
    """Compute the mean cosines of all classes.

    The dot product of two sums of unit vectors is the sum of all their cosines, so the pairs are
    never formed.

    >>> result = class_cosines({"A": np.array([[1.0, 0.0], [0.0, 2.0]]), "B": np.array([[3.0, 0.0]])})
    >>> result.means.tolist()
    [[0.0, 0.5], [0.5, nan]]
    """
    units = {name: unit_vectors(values) for name, values in vectors.items() if len(values)}
    sums = np.array([values.sum(0) for values in units.values()]).reshape(len(units), -1)
    counts = np.array([len(values) for values in units.values()], float)
    means = sums @ sums.T / np.outer(counts, counts)
    for index, values in enumerate(units.values()):
        pairs = counts[index] * (counts[index] - 1)
        with_itself = (values**2).sum()
        means[index, index] = (sums[index] @ sums[index] - with_itself) / pairs if pairs else np.nan
    return ClassCosines(tuple(units), means)


def overlap_cosines(
    spans: npt.NDArray[np.int64], vectors: npt.NDArray[Any], is_entity: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the index into ``OVERLAPS`` and the cosine of every pair of an entity and another span of its sentence.

    The overlap ratio of two spans is the number of common words divided by the number of words in
    either (section 5.1).
    """
    start, end = spans.T
    unit = unit_vectors(vectors)
    rows = np.flatnonzero(is_entity)
    cosines = unit[rows] @ unit.T
    ratio = iou(start[rows, None], end[rows, None], start, end)
    is_other = rows[:, None] != np.arange(len(spans))
    level = np.where(ratio == 0, 0, np.searchsorted((0.25, 0.5, 0.75), ratio) + 1)
    return level[is_other], cosines[is_other]


def _mean(values: Sequence[float]) -> float | None:
    known = [float(value) for value in values if not np.isnan(value)]
    return sum(known) / len(known) if known else None
