"""Several systems on the same gold, of one run each or several: which is better, by how much, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation.agreement import Agreement, Combination, agreement, combination
from spanwise.evaluation.differences import BucketDifference, bucket_differences, error_differences, mean_rates
from spanwise.evaluation.errors import Errors, errors
from spanwise.evaluation.pairing import Output, Pairing, pair
from spanwise.evaluation.scores import Score
from spanwise.evaluation.significance import Comparison, Runs, compare
from spanwise.evaluation.train_index import TrainIndex


@dataclass(frozen=True)
class System:
    """The strict scores of a system's runs; ``errors`` has the mean rate of each kind of mistake (Eq. 24)."""

    scores: tuple[Score, ...]
    errors: Mapping[str, float]

    @property
    def runs(self) -> Runs:
        return Runs(tuple(score.f1 for score in self.scores))

    @property
    def precision(self) -> float:
        return fmean(score.precision for score in self.scores)

    @property
    def recall(self) -> float:
        return fmean(score.recall for score in self.scores)

    def to_json(self) -> dict[str, Any]:
        runs = [score.to_json() for score in self.scores]
        return {**self.runs.to_json(), "runs": runs, "errors": dict(self.errors)}


@dataclass(frozen=True)
class Duel:
    """Two of the systems: the tests of their difference, how they agree, and the mistakes that one makes more often."""

    one: str
    other: str
    test: Comparison
    agreement: Agreement
    errors: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        return {
            "one": self.one,
            "other": self.other,
            **self.test.to_json(),
            "agreement": self.agreement.to_json(),
            "errors": dict(self.errors),
        }


@dataclass(frozen=True)
class SystemsComparison:
    """All systems, all pairs of them, and what they reach together.

    ``buckets`` has for each attribute, and each system but the first, its differences from the first. ``missing`` are systems
    that have nothing for some sentences, and for how many at most: what is in these counts as missed.
    """

    systems: Mapping[str, System]
    duels: tuple[Duel, ...]
    together: Combination
    sentences: int
    buckets: Mapping[str, Mapping[str, tuple[BucketDifference, ...]]] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "systems": {name: system.to_json() for name, system in self.systems.items()},
            "pairs": [duel.to_json() for duel in self.duels],
            "together": self.together.to_json(),
            "sentences": self.sentences,
            "missing_sentences": dict(self.missing),
            "buckets": {
                attribute: {name: [bucket.to_json() for bucket in own] for name, own in differences.items()}
                for attribute, differences in self.buckets.items()
            },
        }


def compare_systems(
    gold: Iterable[Sentence],
    systems: Mapping[str, Sequence[Output]],
    train: TrainIndex | Iterable[Sentence] | None = None,
    *,
    buckets: Mapping[str, int | None] | None = None,
) -> SystemsComparison:
    """Compare the outputs of systems, each one run or one for each of several seeds, in the same order.

    ``buckets`` are attributes to compare by (see ``bucketed``), each with the number of buckets of equal count, or None for
    the published ones. Some of them need ``train``.

    >>> from spanwise.core.types import Entity
    >>> gold = [Sentence("s1", ("Oslo", "and", "York"), (Entity("Place", ((0, 1),)), Entity("Place", ((2, 3),))))]
    >>> first, second = ([Sentence("s1", gold[0].words, (entity,))] for entity in gold[0].entities)
    >>> result = compare_systems(gold, {"A": [first], "B": [second]})
    >>> result.duels[0].test.difference, result.duels[0].agreement.agreement, result.together.oracle.f1
    (0.0, 0.0, 1.0)
    """
    if len(systems) < 2:
        raise SpanwiseError("expected two systems or more to compare")
    _check_runs(systems)
    gold = list(gold)
    outputs = {name: [pair(gold, run) for run in runs] for name, runs in systems.items()}
    judged = {name: [errors(gold, run) for run in runs] for name, runs in outputs.items()}
    index = train if isinstance(train, TrainIndex) or train is None else TrainIndex(train)
    first, *others = outputs
    return SystemsComparison(
        {name: System(tuple(run.score for run in runs), mean_rates(runs)) for name, runs in judged.items()},
        tuple(_duel(gold, both, outputs, judged) for both in combinations(outputs, 2)),
        combination(list(judged.values())),
        len(gold),
        {
            attribute: {
                name: tuple(bucket_differences(gold, outputs[name], outputs[first], index, attribute=attribute, cuts=cuts))
                for name in others
            }
            for attribute, cuts in (buckets or {}).items()
        },
        {name: most for name, runs in outputs.items() if (most := max(len(run.missing) for run in runs))},
    )


def _duel(
    gold: Sequence[Sentence],
    names: tuple[str, str],
    outputs: Mapping[str, Sequence[Pairing]],
    judged: Mapping[str, Sequence[Errors]],
) -> Duel:
    one, other = names
    test = compare(gold, outputs[one], outputs[other])
    runs = judged[one], judged[other]
    return Duel(one, other, test, agreement(*runs), error_differences(*runs))


def _check_runs(systems: Mapping[str, Sequence[object]]) -> None:
    counts = {name: len(runs) for name, runs in systems.items()}
    if not all(counts.values()) or len(set(counts.values())) > 1:
        said = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise SpanwiseError(f"runs are compared in pairs, so all systems need as many: {said}")
