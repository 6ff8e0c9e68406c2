"""Agreement between systems, and the scores they could reach in combination."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from spanwise.evaluation.errors import ErrorAnalysis
from spanwise.evaluation.matching import Match, Mention
from spanwise.evaluation.scores import Score, ratio, sum_scores

Key: TypeAlias = tuple[Any, ...]
MAX_STRINGS = 10


@dataclass(frozen=True)
class UniqueHits:
    """Gold entities found by one of two systems only: their number, types and most frequent strings."""

    count: int
    types: Counter[str] = field(default_factory=Counter)
    strings: tuple[tuple[str, str, int], ...] = ()  # type, text, count

    def to_json(self) -> dict[str, Any]:
        strings = [{"type": type, "text": text, "count": count} for type, text, count in self.strings]
        return {"count": self.count, "types": dict(self.types.most_common()), "strings": strings}


@dataclass(frozen=True)
class Agreement:
    """Agreement of two systems on the same gold data. With several runs, counts are sums over pairs of runs.

    Of ``support`` gold entities, ``both`` were found by both systems and ``neither`` by none.
    ``shared_errors`` counts the wrong predictions that both systems make.
    """

    runs: int
    support: int
    both: int
    only_first: UniqueHits
    only_second: UniqueHits
    shared_errors: int
    first_predicted: int
    second_predicted: int

    @property
    def neither(self) -> int:
        return self.support - self.both - self.only_first.count - self.only_second.count

    @property
    def agreement(self) -> float:
        """F1 of one system's predictions with the other's as gold.

        It is symmetric, and used as a measure of agreement between annotators (Hripcsak and
        Rothschild 2005).
        """
        return ratio(2 * (self.both + self.shared_errors), self.first_predicted + self.second_predicted)

    @property
    def complementarity(self) -> tuple[float, float]:
        """Share of the second system's misses that the first one finds, and vice versa."""
        first, second = self.only_first.count, self.only_second.count
        return ratio(first, first + self.neither), ratio(second, second + self.neither)

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "support": self.support,
            "both": self.both,
            "neither": self.neither,
            "only_first": self.only_first.to_json(),
            "only_second": self.only_second.to_json(),
            "shared_errors": self.shared_errors,
            "agreement": self.agreement,
            "complementarity": list(self.complementarity),
        }


@dataclass(frozen=True)
class Combination:
    """Scores of combined systems: ``union`` and ``intersection`` of their predictions, and an ``oracle``.

    The oracle keeps exactly the correct predictions of the union: an upper bound for every
    combination. With several runs, counts are sums over runs.
    """

    union: Score
    intersection: Score
    oracle: Score

    def to_json(self) -> dict[str, Any]:
        return {
            "union": self.union.to_json(),
            "intersection": self.intersection.to_json(),
            "oracle": self.oracle.to_json(),
        }


def agreement(first: Sequence[ErrorAnalysis], second: Sequence[ErrorAnalysis]) -> Agreement:
    """Compare two systems evaluated on the same gold data; runs are paired in order."""
    both = shared_errors = 0
    only_first: list[Mention] = []
    only_second: list[Mention] = []
    for first_run, second_run in zip(first, second, strict=True):
        first_hits, first_errors = _hits_and_errors(first_run)
        second_hits, second_errors = _hits_and_errors(second_run)
        both += len(first_hits.keys() & second_hits.keys())
        shared_errors += len(first_errors & second_errors)
        only_first.extend(mention for key, mention in first_hits.items() if key not in second_hits)
        only_second.extend(mention for key, mention in second_hits.items() if key not in first_hits)
    return Agreement(
        runs=len(first),
        support=sum(run.score.support for run in first),
        both=both,
        only_first=_unique_hits(only_first),
        only_second=_unique_hits(only_second),
        shared_errors=shared_errors,
        first_predicted=sum(run.score.predicted for run in first),
        second_predicted=sum(run.score.predicted for run in second),
    )


def combination(systems: Sequence[Sequence[ErrorAnalysis]]) -> Combination:
    """Combine systems evaluated on the same gold data; runs are combined in order."""
    unions, intersections, oracles = [], [], []
    for runs in zip(*systems, strict=True):
        hits, wrong = zip(*map(_hits_and_errors, runs), strict=True)
        support = runs[0].score.support
        any_hit, all_hit = set().union(*hits), set(hits[0]).intersection(*hits)
        any_wrong, all_wrong = set().union(*wrong), set(wrong[0]).intersection(*wrong)
        unions.append(Score(support, len(any_hit) + len(any_wrong), len(any_hit)))
        intersections.append(Score(support, len(all_hit) + len(all_wrong), len(all_hit)))
        oracles.append(Score(support, len(any_hit), len(any_hit)))
    return Combination(sum_scores(unions), sum_scores(intersections), sum_scores(oracles))


def _hits_and_errors(run: ErrorAnalysis) -> tuple[dict[Key, Mention], set[Key]]:
    """Correct mentions and wrong predictions of a run, under keys that are comparable across runs."""
    hits: dict[Key, Mention] = {}
    wrong: set[Key] = set()
    for match in run.matches:
        if match.outcome == "correct":
            hits[_key(match, match.mention)] = match.mention
        elif match.predicted is not None:
            wrong.add(_key(match, match.predicted))
    return hits, wrong


def _key(match: Match, mention: Mention) -> Key:
    return match.sentence_index, mention.type, mention.spans, mention.text


def _unique_hits(mentions: Sequence[Mention]) -> UniqueHits:
    strings = Counter((mention.type, mention.text) for mention in mentions).most_common(MAX_STRINGS)
    types = Counter(mention.type for mention in mentions)
    return UniqueHits(len(mentions), types, tuple((*string, count) for string, count in strings))
