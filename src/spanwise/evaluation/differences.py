"""Differences between two systems by bucket and by error type (Bundling Learning for NER, Tables 6 and 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation.bootstrap import Interval
from spanwise.evaluation.buckets import BucketRange, bucket_counts, total_score
from spanwise.evaluation.errors import ErrorAnalysis
from spanwise.evaluation.matching import ERROR_TYPES
from spanwise.evaluation.pairing import SystemOutput, pair
from spanwise.evaluation.significance import RunScores, difference_interval, shared_units, unit_counts
from spanwise.evaluation.train_index import TrainIndex

OVERLAP_RATES = {"BE-Rate": "boundary", "TE-Rate": "type"}  # published names of error rates (Eq. 24)


@dataclass(frozen=True, kw_only=True)
class BucketDifference(BucketRange):
    """Mean F1 of the ``first`` system minus that of the ``second`` in a bucket of ``support`` gold entities.

    ``interval`` is the bootstrap interval of the difference; None if fewer than 20 sentences have
    entities in the bucket.
    """

    support: int
    first: RunScores
    second: RunScores
    difference: float
    interval: Interval | None

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the differences of runs, paired in order; see ``paired_deviation``."""
        return paired_deviation(self.first.f1, self.second.f1)

    def to_json(self) -> dict[str, Any]:
        return {
            **super().to_json(),
            "support": self.support,
            "first": self.first.to_json(),
            "second": self.second.to_json(),
            "difference": self.difference,
            "deviation": self.deviation,
            "interval": None if self.interval is None else self.interval.to_json(),
        }


def bucket_differences(
    gold: Iterable[Sentence],
    first: Sequence[SystemOutput],
    second: Sequence[SystemOutput],
    train: TrainIndex | Iterable[Sentence] | None = None,
    *,
    attribute: str = "eLen",
    cuts: int | Sequence[float] | None = None,
    use_paper_definition: bool = False,
) -> list[BucketDifference]:
    """Compare two systems, each with one or more runs, bucket by bucket.

    The other parameters are those of ``bucket_scores``.

    >>> from spanwise.core.types import Entity
    >>> gold = [Sentence("s1", ("Oslo", "and", "York"), (Entity("Place", ((0, 1),)), Entity("Place", ((2, 3),))))]
    >>> predicted = [Sentence("s1", gold[0].words, gold[0].entities[:1])]
    >>> bucket = bucket_differences(gold, [predicted], [gold])[0]
    >>> bucket.name, bucket.support, round(bucket.difference, 4)
    ('XS', 2, -0.3333)
    """
    if not first or not second:
        raise SpanwiseError(f"expected at least one run of each system, found {len(first)} and {len(second)}")
    gold = list(gold)
    index = TrainIndex.of(train)
    pairings = [pair(gold, run) for run in (*first, *second)]
    units = shared_units(gold, pairings)
    buckets = [
        bucket_counts(pairing, index, attribute=attribute, cuts=cuts, use_paper_definition=use_paper_definition)
        for pairing in pairings
    ]
    differences = []
    for number, bucket in enumerate(buckets[0][0]):
        rows = [counts[number] for _, counts in buckets]
        scores = [total_score(run_rows) for run_rows in rows]
        f1 = [score.f1 for score in scores]
        difference, interval = difference_interval(unit_counts(units, rows), len(first))
        differences.append(
            BucketDifference(
                **vars(bucket),
                support=scores[0].support,
                first=RunScores(tuple(f1[: len(first)])),
                second=RunScores(tuple(f1[len(first) :])),
                difference=difference,
                interval=interval,
            )
        )
    return differences


def paired_deviation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the standard deviation of the differences of runs, paired in order; None for one run or unequal numbers.

    >>> paired_deviation([3.0, 5.0], [1.0, 1.0])
    1.4142135623730951
    """
    if len(first) != len(second) or len(first) < 2:
        return None
    return stdev(one - other for one, other in zip(first, second, strict=True))


def error_differences(first: Sequence[ErrorAnalysis], second: Sequence[ErrorAnalysis]) -> Mapping[str, float]:
    """Return the mean rate (Eq. 24) of each error type in the first system minus that in the second."""
    means = [{type: fmean(run.rates[type] for run in runs) for type in ERROR_TYPES} for runs in (first, second)]
    return {type: means[0][type] - means[1][type] for type in ERROR_TYPES}


def error_rates(run: ErrorAnalysis) -> dict[str, float]:
    """Return the rate of each error type in a run, then BE-Rate and TE-Rate with the paper's counts (Table 7)."""
    return {type: run.rates[type] for type in ERROR_TYPES} | {
        name: run.published_rates[type] for name, type in OVERLAP_RATES.items()
    }
