"""What systems have in common, what each finds alone, and what they could find together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from spanwise.evaluation.errors import Errors
from spanwise.evaluation.judging import Claim, Judgement
from spanwise.evaluation.scores import Score, ratio, summed

Key: TypeAlias = tuple[Any, ...]
MOST = 10  # strings in a list


@dataclass(frozen=True)
class Alone:
    """The gold entities that one system finds and another misses: how many, of which types, and the commonest strings."""

    count: int
    types: Counter[str] = field(default_factory=Counter)
    strings: tuple[tuple[str, str, int], ...] = ()  # type, text, how often

    def to_json(self) -> dict[str, Any]:
        strings = [{"type": type, "text": text, "count": count} for type, text, count in self.strings]
        return {"count": self.count, "types": dict(self.types.most_common()), "strings": strings}


@dataclass(frozen=True)
class Agreement:
    """Two systems on the same gold; where they have several runs, the counts are sums over pairs of runs.

    Of ``support`` gold entities both find ``both`` and neither finds ``neither``. ``same_wrong`` are wrong predictions that
    both make.
    """

    runs: int
    support: int
    both: int
    one_alone: Alone
    other_alone: Alone
    same_wrong: int
    one_predicted: int
    other_predicted: int

    @property
    def neither(self) -> int:
        return self.support - self.both - self.one_alone.count - self.other_alone.count

    @property
    def agreement(self) -> float:
        """The F1 of one's predictions when the other's are taken for gold, which is the same either way round (as Hripcsak
        and Rothschild 2005 measure the agreement of annotators)."""
        return ratio(2 * (self.both + self.same_wrong), self.one_predicted + self.other_predicted)

    @property
    def complementarity(self) -> tuple[float, float]:
        """The share of what the other misses that one finds, and the other way round."""
        one, other = self.one_alone.count, self.other_alone.count
        return ratio(one, one + self.neither), ratio(other, other + self.neither)

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "support": self.support,
            "both": self.both,
            "neither": self.neither,
            "one_alone": self.one_alone.to_json(),
            "other_alone": self.other_alone.to_json(),
            "same_wrong": self.same_wrong,
            "agreement": self.agreement,
            "complementarity": list(self.complementarity),
        }


@dataclass(frozen=True)
class Combination:
    """What several systems reach together: by ``union`` all that any of them predicts, by ``common`` what all of them do.

    ``oracle`` is who knows which predictions are right and keeps these: what no way of combining them can surpass. Where the
    systems have several runs, the counts are sums over them.
    """

    union: Score
    common: Score
    oracle: Score

    def to_json(self) -> dict[str, Any]:
        return {"union": self.union.to_json(), "common": self.common.to_json(), "oracle": self.oracle.to_json()}


def agreement(ones: Sequence[Errors], others: Sequence[Errors]) -> Agreement:
    """How two systems, whose runs were judged on the same gold, agree; runs are paired in order."""
    both = same_wrong = 0
    alone: tuple[list[Claim], list[Claim]] = [], []
    for one, other in zip(ones, others, strict=True):
        found, wrong = zip(*map(_claims, (one, other)), strict=True)
        both += len(found[0].keys() & found[1].keys())
        same_wrong += len(wrong[0] & wrong[1])
        for mine, (own, theirs) in zip(alone, (found, found[::-1]), strict=True):
            mine.extend(claim for key, claim in own.items() if key not in theirs)
    return Agreement(
        runs=len(ones),
        support=sum(one.score.support for one in ones),
        both=both,
        one_alone=_alone(alone[0]),
        other_alone=_alone(alone[1]),
        same_wrong=same_wrong,
        one_predicted=sum(one.score.predicted for one in ones),
        other_predicted=sum(other.score.predicted for other in others),
    )


def combination(systems: Sequence[Sequence[Errors]]) -> Combination:
    """What systems, whose runs were judged on the same gold, reach together; first runs with first runs, and so on."""
    scores: tuple[list[Score], list[Score], list[Score]] = [], [], []
    for runs in zip(*systems, strict=True):
        found, wrong = zip(*map(_claims, runs), strict=True)
        support = runs[0].score.support
        any_found, all_found = set().union(*found), set(found[0]).intersection(*found)
        any_wrong, all_wrong = set().union(*wrong), set(wrong[0]).intersection(*wrong)
        scores[0].append(Score(support, len(any_found) + len(any_wrong), len(any_found)))
        scores[1].append(Score(support, len(all_found) + len(all_wrong), len(all_found)))
        scores[2].append(Score(support, len(any_found), len(any_found)))
    return Combination(*map(summed, scores))


def _claims(run: Errors) -> tuple[dict[Key, Claim], set[Key]]:
    """The gold entities that a run found, and its wrong predictions, under names that are the same for all runs."""
    found: dict[Key, Claim] = {}
    wrong: set[Key] = set()
    for judgement in run.judgements:
        if judgement.kind == "correct":
            found[_key(judgement, judgement.claim)] = judgement.claim
        elif judgement.predicted is not None:
            wrong.add(_key(judgement, judgement.predicted))
    return found, wrong


def _key(judgement: Judgement, claim: Claim) -> Key:
    return judgement.number, claim.type, claim.spans, claim.text


def _alone(claims: Sequence[Claim]) -> Alone:
    strings = Counter((claim.type, claim.text) for claim in claims).most_common(MOST)
    return Alone(len(claims), Counter(claim.type for claim in claims), tuple((*string, count) for string, count in strings))
