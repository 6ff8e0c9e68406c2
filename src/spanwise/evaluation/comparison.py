"""Compare several systems on the same gold data, each with one or more runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation.agreement import Agreement, Combination, agreement, combination
from spanwise.evaluation.differences import (
    OVERLAP_RATES,
    BucketDifference,
    bucket_differences,
    error_differences,
    error_rates,
)
from spanwise.evaluation.errors import ErrorAnalysis, analyze_errors
from spanwise.evaluation.matching import ERROR_TYPES
from spanwise.evaluation.pairing import Pairing, SystemOutput, pair
from spanwise.evaluation.scores import Score
from spanwise.evaluation.significance import PairedTest, RunScores, compare
from spanwise.evaluation.train_index import TrainIndex


@dataclass(frozen=True)
class SystemScores:
    """The strict scores of a system's runs, and their rates of each error type (Eq. 24).

    ``error_rates`` are means over runs and match each wrong prediction with one missed entity. ``overlap_rates`` are the
    paper's: a boundary error overlaps a gold entity of any type with other boundaries (BE-Rate), a
    type error has its boundaries and another type (TE-Rate).
    """

    scores: tuple[Score, ...]
    rates: tuple[Mapping[str, float], ...]  # of each run, both kinds

    @property
    def runs(self) -> RunScores:
        return RunScores(tuple(score.f1 for score in self.scores))

    @property
    def precision(self) -> float:
        return fmean(score.precision for score in self.scores)

    @property
    def recall(self) -> float:
        return fmean(score.recall for score in self.scores)

    @property
    def error_rates(self) -> dict[str, float]:
        return {type: fmean(run[type] for run in self.rates) for type in ERROR_TYPES}

    @property
    def overlap_rates(self) -> dict[str, float]:
        return {name: fmean(run[name] for run in self.rates) for name in OVERLAP_RATES}

    def to_json(self) -> dict[str, Any]:
        runs = [
            {**score.to_json(), **SystemScores((score,), (rates,))._rates_json()}
            for score, rates in zip(self.scores, self.rates, strict=True)
        ]
        return {**self.runs.to_json(), "runs": runs, **self._rates_json()}

    def _rates_json(self) -> dict[str, Any]:
        return {"error_rates": self.error_rates, "overlap_rates": self.overlap_rates}


@dataclass(frozen=True)
class SystemPair:
    """Two systems: the significance of their difference, their agreement, and differences in error rates."""

    first: str
    second: str
    test: PairedTest
    agreement: Agreement
    error_differences: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "second": self.second,
            **self.test.to_json(),
            "agreement": self.agreement.to_json(),
            "error_differences": dict(self.error_differences),
        }


@dataclass(frozen=True)
class SystemsComparison:
    """All systems, all pairs of them, and their combination.

    ``buckets`` holds, for each attribute and each system but the first, the differences to the first
    system. ``missing_sentences`` holds the systems without predictions for some sentences, with the
    largest number over their runs; the entities of these sentences count as missed.
    """

    systems: Mapping[str, SystemScores]
    pairs: tuple[SystemPair, ...]
    combined: Combination
    sentences: int
    buckets: Mapping[str, Mapping[str, tuple[BucketDifference, ...]]] = field(default_factory=dict)
    missing_sentences: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "systems": {name: system.to_json() for name, system in self.systems.items()},
            "pairs": [systems.to_json() for systems in self.pairs],
            "combined": self.combined.to_json(),
            "sentences": self.sentences,
            "missing_sentences": dict(self.missing_sentences),
            "buckets": {
                attribute: {name: [bucket.to_json() for bucket in buckets] for name, buckets in differences.items()}
                for attribute, differences in self.buckets.items()
            },
        }


def compare_systems(
    gold: Iterable[Sentence],
    systems: Mapping[str, Sequence[SystemOutput]],
    train: TrainIndex | Iterable[Sentence] | None = None,
    *,
    buckets: Mapping[str, int | None] | None = None,
    use_paper_definition: bool = False,
) -> SystemsComparison:
    """Compare the outputs of systems: one run each, or one run per seed in the same order.

    ``buckets`` maps attributes (see ``bucket_scores``) to a number of equal buckets, or to None for
    the published ones. Some attributes need ``train``. ``use_paper_definition`` computes attributes
    literally by the paper's equations.

    >>> from spanwise.core.types import Entity
    >>> gold = [Sentence("s1", ("Oslo", "and", "York"), (Entity("Place", ((0, 1),)), Entity("Place", ((2, 3),))))]
    >>> first, second = ([Sentence("s1", gold[0].words, (entity,))] for entity in gold[0].entities)
    >>> result = compare_systems(gold, {"A": [first], "B": [second]})
    >>> result.pairs[0].test.difference, result.pairs[0].agreement.agreement, result.combined.oracle.f1
    (0.0, 0.0, 1.0)
    """
    if len(systems) < 2:
        raise SpanwiseError(f"expected at least two systems to compare, found {len(systems)}")
    _check_runs(systems)
    gold = list(gold)
    outputs = {name: [pair(gold, run) for run in runs] for name, runs in systems.items()}
    analyses = {name: [analyze_errors(gold, run) for run in runs] for name, runs in outputs.items()}
    index = TrainIndex.of(train)
    first, *others = outputs
    return SystemsComparison(
        {
            name: SystemScores(tuple(run.score for run in runs), tuple(map(error_rates, runs)))
            for name, runs in analyses.items()
        },
        tuple(_compare_pair(gold, names, outputs, analyses) for names in combinations(outputs, 2)),
        combination(list(analyses.values())),
        len(gold),
        {
            attribute: {
                name: tuple(
                    bucket_differences(
                        gold,
                        outputs[name],
                        outputs[first],
                        index,
                        attribute=attribute,
                        cuts=cuts,
                        use_paper_definition=use_paper_definition,
                    )
                )
                for name in others
            }
            for attribute, cuts in (buckets or {}).items()
        },
        {name: missing for name, runs in outputs.items() if (missing := max(len(run.missing) for run in runs))},
    )


def _compare_pair(
    gold: Sequence[Sentence],
    names: tuple[str, str],
    outputs: Mapping[str, Sequence[Pairing]],
    analyses: Mapping[str, Sequence[ErrorAnalysis]],
) -> SystemPair:
    first, second = names
    test = compare(gold, outputs[first], outputs[second])
    runs = analyses[first], analyses[second]
    return SystemPair(first, second, test, agreement(*runs), error_differences(*runs))


def _check_runs(systems: Mapping[str, Sequence[object]]) -> None:
    counts = {name: len(runs) for name, runs in systems.items()}
    if not all(counts.values()) or len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise SpanwiseError(f"runs are compared in pairs; expected the same number of runs for all systems, but {listed}")
