"""One system less another: by groups of entities, and by kinds of mistakes (Tables 6 and 7 of Bundling Learning for NER)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation.bootstrap import Interval
from spanwise.evaluation.buckets import Label, divided, total
from spanwise.evaluation.errors import Errors
from spanwise.evaluation.judging import MISTAKES
from spanwise.evaluation.pairing import Output, pair
from spanwise.evaluation.significance import Runs, counted, difference_interval, shared_units
from spanwise.evaluation.train_index import TrainIndex


@dataclass(frozen=True, kw_only=True)
class BucketDifference(Label):
    """The mean F1 of ``ones`` less that of ``others`` in a group of ``support`` gold entities.

    ``interval`` is its bootstrap interval over sentences, None where fewer than 20 of them have entities in the group.
    """

    support: int
    ones: Runs
    others: Runs
    difference: float
    interval: Interval | None

    def to_json(self) -> dict[str, Any]:
        return {
            **super().to_json(),
            "support": self.support,
            "ones": self.ones.to_json(),
            "others": self.others.to_json(),
            "difference": self.difference,
            "interval": None if self.interval is None else self.interval.to_json(),
        }


def bucket_differences(
    gold: Iterable[Sentence],
    ones: Sequence[Output],
    others: Sequence[Output],
    train: TrainIndex | Iterable[Sentence] | None = None,
    *,
    attribute: str = "eLen",
    cuts: int | Sequence[float] | None = None,
    paper: bool = False,
) -> list[BucketDifference]:
    """Two systems, of one run each or several, bucket by bucket; the other arguments are those of ``bucketed``.

    >>> from spanwise.core.types import Entity
    >>> gold = [Sentence("s1", ("Oslo", "and", "York"), (Entity("Place", ((0, 1),)), Entity("Place", ((2, 3),))))]
    >>> found = [Sentence("s1", gold[0].words, gold[0].entities[:1])]
    >>> first = bucket_differences(gold, [found], [gold])[0]
    >>> first.name, first.support, round(first.difference, 4)
    ('XS', 2, -0.3333)
    """
    if not ones or not others:
        raise SpanwiseError("expected one run or more of each of two systems")
    gold = list(gold)
    index = train if isinstance(train, TrainIndex) or train is None else TrainIndex(train)
    pairings = [pair(gold, run) for run in (*ones, *others)]
    units = shared_units(gold, pairings)
    parts = [divided(pairing, index, attribute=attribute, cuts=cuts, paper=paper) for pairing in pairings]
    differences = []
    for number, label in enumerate(parts[0][0]):
        rows = [counts[number] for _, counts in parts]
        scores = [total(own) for own in rows]
        f1 = [score.f1 for score in scores]
        difference, interval = difference_interval(counted(units, rows), len(ones))
        differences.append(
            BucketDifference(
                **vars(label),
                support=scores[0].support,
                ones=Runs(tuple(f1[: len(ones)])),
                others=Runs(tuple(f1[len(ones) :])),
                difference=difference,
                interval=interval,
            )
        )
    return differences


def error_differences(ones: Sequence[Errors], others: Sequence[Errors]) -> Mapping[str, float]:
    """For each kind of mistake, the mean rate (Eq. 24) of the runs of one system less that of the other's; above 0, it makes
    more of this kind among its mistakes."""
    rates = mean_rates(ones), mean_rates(others)
    return {kind: rates[0][kind] - rates[1][kind] for kind in MISTAKES}


def mean_rates(runs: Sequence[Errors]) -> Mapping[str, float]:
    """The rates of the kinds of mistakes, as means over runs."""
    return {kind: fmean(run.rates[kind] for run in runs) for kind in MISTAKES}
