"""Paired significance tests on the micro F1 of two systems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation.bootstrap import (
    LEVEL,
    SEED,
    Interval,
    block_sizes,
    f1_from_counts,
    has_enough_units,
    percentile_interval,
    resample,
)
from spanwise.evaluation.pairing import Pairing, SystemOutput, gold_indices, pair
from spanwise.evaluation.scores import entity_items

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 10_000
INTERVAL_RESAMPLES = 1_000  # for the interval of one of many differences
TOLERANCE = 1e-12  # differences this close are equal


@dataclass(frozen=True)
class RunScores:
    """The micro F1 of each run of a system, with mean and standard deviation (None for a single run)."""

    f1: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.f1)

    @property
    def deviation(self) -> float | None:
        return stdev(self.f1) if len(self.f1) > 1 else None

    def to_json(self) -> dict[str, Any]:
        return {"f1": list(self.f1), "mean": self.mean, "deviation": self.deviation}


@dataclass(frozen=True)
class PairedTest:
    """Two systems on the same gold data: ``difference`` is the mean F1 of ``first`` minus that of ``second``.

    ``interval`` is the bootstrap interval of the difference. The p-values are the probabilities of a
    difference at least as large, in either direction, if the systems were equal: ``bootstrap_p`` by
    resampling sentences, ``randomisation_p`` by exchanging the systems' outputs. ``units`` is the
    number of units that are drawn or exchanged: sentences, or groups of sentences that a system
    splits differently. If fewer than 20 units have entities, the bootstrap is unreliable, and
    ``interval`` and ``bootstrap_p`` are None; the randomisation test is valid for any number.
    """

    first: RunScores
    second: RunScores
    difference: float
    interval: Interval | None
    bootstrap_p: float | None
    randomisation_p: float
    units: int

    def to_json(self) -> dict[str, Any]:
        return {
            "first_scores": self.first.to_json(),
            "second_scores": self.second.to_json(),
            "difference": self.difference,
            "interval": None if self.interval is None else self.interval.to_json(),
            "bootstrap_p": self.bootstrap_p,
            "randomisation_p": self.randomisation_p,
            "units": self.units,
        }


def compare(
    gold: Iterable[Sentence],
    first: Sequence[SystemOutput],
    second: Sequence[SystemOutput],
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = SEED,
) -> PairedTest:
    """Compare the outputs of two systems: one run each, or one run per seed in the same order.

    Whole sentences are drawn or exchanged in all runs at once, because the runs of a system tend to
    have errors in the same sentences. The tests generalise to other sentences, not to other seeds;
    for those see ``RunScores.deviation``.

    >>> from spanwise.core.types import Entity
    >>> gold = [Sentence(str(n), ("Oslo",), (Entity("Place", ((0, 1),)),)) for n in range(20)]
    >>> empty = [Sentence(str(n), ("Oslo",)) for n in range(20)]
    >>> result = compare(gold, [gold], [gold[:5] + empty[5:]])
    >>> round(result.difference, 4), result.randomisation_p < 0.01
    (0.6, True)
    """
    if not first or len(first) != len(second):
        sizes = f"{len(first)} and {len(second)}"
        raise SpanwiseError(f"runs are compared in pairs: expected the same number of runs of both systems, found {sizes}")
    if resamples < 1:
        raise SpanwiseError(f"expected at least one resample, found {resamples}")
    gold = list(gold)
    if not gold:
        raise SpanwiseError("there are no gold sentences to compare systems on")
    counts = _counts(gold, [*first, *second])
    runs = len(first)
    scores = f1_from_counts(counts.sum(axis=0))
    difference = float(_difference(counts.sum(axis=0), runs))
    drawn = _difference(_bootstrap(counts, resamples, seed), runs)
    exchanged = _randomise(counts, runs, resamples, seed)
    can_bootstrap = has_enough_units(counts)
    return PairedTest(
        first=RunScores(tuple(scores[:runs].tolist())),
        second=RunScores(tuple(scores[runs:].tolist())),
        difference=difference,
        interval=percentile_interval(drawn, level, resamples, seed) if can_bootstrap else None,
        # Resamples vary around the observed difference as they would vary around 0 if the systems were equal.
        bootstrap_p=_p_value(drawn - difference, difference) if can_bootstrap else None,
        randomisation_p=_p_value(exchanged, difference),
        units=len(counts),
    )


def difference_interval(
    counts: NDArray[np.int64], runs: int, resamples: int = INTERVAL_RESAMPLES, level: float = LEVEL, seed: int = SEED
) -> tuple[float, Interval | None]:
    """Return the mean F1 of the first ``runs`` minus that of the others, and its bootstrap interval.

    ``counts`` comes from ``unit_counts``. The interval is None if fewer than 20 units have entities.
    """
    difference = float(_difference(counts.sum(axis=0), runs))
    if not has_enough_units(counts):
        return difference, None
    drawn = _difference(_bootstrap(counts, resamples, seed), runs)
    return difference, percentile_interval(drawn, level, resamples, seed)


def unit_counts(units: Sequence[Sequence[int]], rows: Sequence[Sequence[tuple[int, int, int]]]) -> NDArray[np.int64]:
    """Sum the correct, predicted and gold entities of each unit in each run: [units, runs, 3].

    For each pair of each run, ``rows`` holds the counts and ``units`` the index of its unit.
    """
    import numpy as np

    total = max((max(run_units, default=-1) for run_units in units), default=-1) + 1
    counts = np.zeros((total, len(rows), 3), dtype=np.int64)
    for run, (run_units, values) in enumerate(zip(units, rows, strict=True)):
        np.add.at(counts[:, run], np.array(run_units, dtype=np.intp), np.array(values, dtype=np.int64).reshape(-1, 3))
    return counts


def shared_units(gold: Sequence[Sentence], pairings: Sequence[Pairing]) -> list[list[int]]:
    """Return the index of the unit of each pair in each pairing.

    A unit is a gold sentence, or several sentences that one of the pairings splits differently.
    """
    groups = [gold_indices(gold, pairing) for pairing in pairings]
    units = _join_groups(len(gold), groups)
    return [[units[members[0]] for members in group] for group in groups]


def _counts(gold: Sequence[Sentence], runs: Sequence[SystemOutput]) -> NDArray[np.int64]:
    pairings = [pair(gold, run) for run in runs]
    rows = []
    for pairing in pairings:
        items = ((entity_items(both.gold), entity_items(both.predicted)) for both in pairing.pairs)
        rows.append([(len(gold_items & predicted), len(predicted), len(gold_items)) for gold_items, predicted in items])
    return unit_counts(shared_units(gold, pairings), rows)


def _difference(counts: NDArray[np.int64], runs: int) -> NDArray[np.float64]:
    """Return the mean F1 of the first ``runs`` minus that of the others; counts are [..., runs, 3]."""
    f1 = f1_from_counts(counts)
    difference: NDArray[np.float64] = f1[..., :runs].mean(axis=-1) - f1[..., runs:].mean(axis=-1)
    return difference


def _bootstrap(counts: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.int64]:
    """Resample units in all runs at once (Efron and Tibshirani 1993; for F1, Berg-Kirkpatrick et al. 2012)."""
    return resample(counts.reshape(len(counts), -1), resamples, seed).reshape(resamples, *counts.shape[1:])


def _randomise(counts: NDArray[np.int64], runs: int, resamples: int, seed: int) -> NDArray[np.float64]:
    """Return the differences after exchanging the outputs of randomly chosen units (Noreen 1989; Yeh 2000)."""
    import numpy as np

    first, second = counts[:, :runs], counts[:, runs:]
    # Units whose exchange has the same effect are interchangeable, so the number of exchanged ones is binomial.
    effects, frequencies = np.unique((second - first).reshape(len(first), -1), axis=0, return_counts=True)
    generator = np.random.default_rng(seed)
    sums = [generator.binomial(frequencies, 0.5, size=(size, len(frequencies))) @ effects for size in block_sizes(resamples)]
    moved = np.concatenate(sums).reshape(resamples, *first.shape[1:])
    return _difference(np.concatenate((first.sum(axis=0) + moved, second.sum(axis=0) - moved), axis=1), runs)


def _p_value(values: NDArray[np.float64], difference: float) -> float:
    """Return the two-sided p-value (Davison and Hinkley 1997, section 4.2).

    The observed difference counts as one of the values, so the p-value is never 0.
    """
    import numpy as np

    extreme = int((np.abs(values) >= abs(difference) - TOLERANCE).sum())
    return (1 + extreme) / (1 + len(values))


def _join_groups(sentences: int, partitions: Iterable[Iterable[Sequence[int]]]) -> list[int]:
    """Return the unit of each sentence: sentences that share a group in any partition are in one unit.

    >>> _join_groups(4, [[[0], [1], [2, 3]], [[0, 1], [2], [3]]])
    [0, 0, 1, 1]
    """
    parents = list(range(sentences))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    for groups in partitions:
        for first, *rest in groups:
            for index in rest:
                parents[root(index)] = root(first)
    units: dict[int, int] = {}
    return [units.setdefault(root(index), len(units)) for index in range(sentences)]
