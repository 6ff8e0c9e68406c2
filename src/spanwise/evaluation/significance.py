"""Whether one system is better than another, or only luckier with the test sentences: paired tests on micro F1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation.bootstrap import LEVEL, SEED, Interval, are_enough, blocks, f1_of, percentiles, resampled
from spanwise.evaluation.pairing import Output, Pairing, gold_numbers, pair
from spanwise.evaluation.scores import entity_items

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 10_000
SAMPLES = 1_000  # for an interval of many
ROUNDING = 1e-12  # two differences no farther apart than this are the same


@dataclass(frozen=True)
class Runs:
    """The micro F1 of each run of a system, with their mean and standard deviation (None of a single run)."""

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
class Comparison:
    """Two systems on the same gold: ``difference`` is the mean F1 of ``ones`` less that of ``others``.

    ``interval`` is the bootstrap interval of the difference. The two p-values say how often a difference at least as large,
    in either direction, comes about by chance: ``bootstrap_p`` when sentences are drawn again, ``randomisation_p`` when the
    two systems' outputs are exchanged. ``sentences`` are the units that were drawn and exchanged: sentences that an output
    cuts elsewhere are one. Where fewer than 20 of them have entities, the bootstrap would call luck a difference: its interval
    and p-value are None. The randomisation is right for any number.
    """

    ones: Runs
    others: Runs
    difference: float
    interval: Interval | None
    bootstrap_p: float | None
    randomisation_p: float
    sentences: int

    def to_json(self) -> dict[str, Any]:
        return {
            "ones": self.ones.to_json(),
            "others": self.others.to_json(),
            "difference": self.difference,
            "interval": None if self.interval is None else self.interval.to_json(),
            "bootstrap_p": self.bootstrap_p,
            "randomisation_p": self.randomisation_p,
            "sentences": self.sentences,
        }


def compare(
    gold: Iterable[Sentence],
    ones: Sequence[Output],
    others: Sequence[Output],
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = SEED,
) -> Comparison:
    """Compare the outputs of two systems: one each, or one for each of several seeds, in the same order.

    Whole sentences are drawn or exchanged, in all runs at once, for the runs of a system tend to err in the same sentences.
    What is tested is thus these runs on other sentences of the kind; how much other seeds would differ is for the
    deviations to say.

    >>> from spanwise.core.types import Entity
    >>> gold = [Sentence(str(n), ("Oslo",), (Entity("Place", ((0, 1),)),)) for n in range(20)]
    >>> nothing = [Sentence(str(n), ("Oslo",)) for n in range(20)]
    >>> result = compare(gold, [gold], [gold[:5] + nothing[5:]])
    >>> round(result.difference, 4), result.randomisation_p < 0.01
    (0.6, True)
    """
    if not ones or len(ones) != len(others):
        raise SpanwiseError(f"runs are compared in pairs: expected as many of each system, not {len(ones)} and {len(others)}")
    if resamples < 1:
        raise SpanwiseError(f"expected one resample or more, not {resamples}")
    gold = list(gold)
    if not gold:
        raise SpanwiseError("there are no gold sentences to compare systems on")
    counts = _counts(gold, [*ones, *others])
    one, other = counts[:, : len(ones)], counts[:, len(ones) :]
    scores = f1_of(counts.sum(axis=0))
    difference = float(_difference(one.sum(axis=0), other.sum(axis=0)))
    sums = _redrawn(counts, resamples, seed)
    drawn = _difference(sums[:, : len(ones)], sums[:, len(ones) :])
    exchanged = _exchanged(one, other, resamples, seed)
    can_draw = are_enough(counts)
    return Comparison(
        ones=Runs(tuple(scores[: len(ones)].tolist())),
        others=Runs(tuple(scores[len(ones) :].tolist())),
        difference=difference,
        interval=percentiles(drawn, level, resamples, seed) if can_draw else None,
        # The resamples vary around the difference that was seen; without a true one they would vary so around 0.
        bootstrap_p=_share_beyond(drawn - difference, difference) if can_draw else None,
        randomisation_p=_share_beyond(exchanged, difference),
        sentences=len(counts),
    )


def _redrawn(counts: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.int64]:
    """The counts of all runs in resamples of sentences (Efron and Tibshirani 1993; for F1, Berg-Kirkpatrick et al. 2012)."""
    return resampled(counts.reshape(len(counts), -1), resamples, seed).reshape(resamples, *counts.shape[1:])


def _exchanged(one: NDArray[np.int64], other: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.float64]:
    """The differences where each sentence's outputs change sides or not by the toss of a coin (Noreen 1989; Yeh 2000)."""
    import numpy as np

    # Of sentences whose exchange has the same effect, only the number that is exchanged matters, which is binomial.
    effects, often = np.unique((other - one).reshape(len(one), -1), axis=0, return_counts=True)
    generator = np.random.default_rng(seed)
    sums = [generator.binomial(often, 0.5, size=(size, len(often))) @ effects for size in blocks(resamples)]
    moved = np.concatenate(sums).reshape(resamples, *one.shape[1:])
    return _difference(one.sum(axis=0) + moved, other.sum(axis=0) - moved)


def _share_beyond(values: NDArray[np.float64], difference: float) -> float:
    """The two-sided p-value. What was seen is one of the values, so that no p-value is 0 (Davison and Hinkley 1997, 4.2)."""
    import numpy as np

    beyond = int((np.abs(values) >= abs(difference) - ROUNDING).sum())
    return (1 + beyond) / (1 + len(values))


def _difference(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
    difference: NDArray[np.float64] = f1_of(one).mean(axis=-1) - f1_of(other).mean(axis=-1)
    return difference


def difference_interval(
    counts: NDArray[np.int64], runs: int, resamples: int = SAMPLES, level: float = LEVEL, seed: int = SEED
) -> tuple[float, Interval | None]:
    """The mean F1 of the first ``runs`` less that of the others, from counts as ``counted`` gives, and its bootstrap interval.

    The interval is None where fewer than 20 units have entities, as in ``compare``.
    """
    one, other = counts[:, :runs], counts[:, runs:]
    difference = float(_difference(one.sum(axis=0), other.sum(axis=0)))
    if not are_enough(counts):
        return difference, None
    sums = _redrawn(counts, resamples, seed)
    return difference, percentiles(_difference(sums[:, :runs], sums[:, runs:]), level, resamples, seed)


def _counts(gold: Sequence[Sentence], runs: Sequence[Output]) -> NDArray[np.int64]:
    pairings = [pair(gold, run) for run in runs]
    rows = []
    for pairing in pairings:
        sides = ((entity_items(both.gold), entity_items(both.predicted)) for both in pairing.pairs)
        rows.append([(len(right & found), len(found), len(right)) for right, found in sides])
    return counted(shared_units(gold, pairings), rows)


def counted(units: Sequence[Sequence[int]], rows: Sequence[Sequence[tuple[int, int, int]]]) -> NDArray[np.int64]:
    """The correct, predicted and gold entities of each unit in each run: units × runs × 3.

    ``rows`` has them for each pair of each run, ``units`` the unit that the pair is in.
    """
    import numpy as np

    counts = np.zeros((max((max(own, default=-1) for own in units), default=-1) + 1, len(rows), 3), dtype=np.int64)
    for run, (own, values) in enumerate(zip(units, rows, strict=True)):
        for unit, row in zip(own, values, strict=True):
            counts[unit, run] += row
    return counts


def shared_units(gold: Sequence[Sentence], pairings: Sequence[Pairing]) -> list[list[int]]:
    """The unit that each pair of each pairing is in: a sentence of gold, or several that one of them cuts elsewhere."""
    groups = [gold_numbers(gold, pairing) for pairing in pairings]
    units = _joined(len(gold), groups)
    return [[units[members[0]] for members in group] for group in groups]


def _joined(sentences: int, partitions: Iterable[Iterable[Sequence[int]]]) -> list[int]:
    """The number of the unit that each sentence is in: sentences that one run cuts elsewhere stay together in all.

    >>> _joined(4, [[[0], [1], [2, 3]], [[0, 1], [2], [3]]])
    [0, 0, 1, 1]
    """
    leaders = list(range(sentences))

    def leader(number: int) -> int:
        while leaders[number] != number:
            leaders[number] = leaders[leaders[number]]
            number = leaders[number]
        return number

    for groups in partitions:
        for first, *rest in groups:
            for number in rest:
                leaders[leader(number)] = leader(first)
    units: dict[int, int] = {}
    return [units.setdefault(leader(number), len(units)) for number in range(sentences)]
