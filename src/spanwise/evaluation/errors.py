"""A system's mistakes: how many of each kind (see ``judging``), the surest ones, and the strings that they are made with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spanwise.core.types import Sentence
from spanwise.evaluation.confusion import Confusion
from spanwise.evaluation.judging import KINDS, MISTAKES, Claim, Judgement, covered, judge
from spanwise.evaluation.pairing import Output, gold_numbers, pair
from spanwise.evaluation.scores import EntityItem, Score, entity_items, ratio

MOST = 50  # mistakes, and strings, in a list


@dataclass(frozen=True, slots=True)
class ConfusedString:
    """A mistake that is made ``count`` times with the same types and texts, and the first of them."""

    kind: str
    count: int
    example: Judgement

    def to_json(self) -> dict[str, Any]:
        def named(claim: Claim | None) -> dict[str, str] | None:
            return None if claim is None else {"type": claim.type, "text": claim.text}

        return {
            "kind": self.kind,
            "count": self.count,
            "gold": named(self.example.gold),
            "predicted": named(self.example.predicted),
            "sentence": self.example.sentence.id,
            "text": self.example.sentence.text,
        }


@dataclass(frozen=True)
class Errors:
    """Every entity of gold and every prediction, each in one of the ``judgements``, in the order of gold's sentences.

    ``published_boundary`` and ``published_type`` count as the paper's words have it, which know no partners: wrong predictions
    that share a word with some gold entity, found or not, and have the words of none; and those that have the words of one.
    """

    judgements: tuple[Judgement, ...]
    score: Score
    confusion: Confusion
    published_boundary: int
    published_type: int

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How many judgements there are of each kind. One with a partner is both a false positive and a false negative."""
        found = Counter(judgement.kind for judgement in self.judgements)
        return {kind: found[kind] for kind in KINDS}

    @property
    def wrong(self) -> int:
        """False positives and false negatives, by which Eq. 24 divides."""
        return self.score.predicted + self.score.support - 2 * self.score.correct

    @property
    def rates(self) -> Mapping[str, float]:
        """The mistakes of each kind over all false positives and negatives (Eq. 24)."""
        return {kind: ratio(self.counts[kind], self.wrong) for kind in MISTAKES}

    @property
    def published_rates(self) -> Mapping[str, float]:
        """BE-Rate and TE-Rate with the paper's own counts."""
        return {"boundary": ratio(self.published_boundary, self.wrong), "type": ratio(self.published_type, self.wrong)}

    @property
    def mistakes(self) -> list[Judgement]:
        """All that is not correct."""
        return [judgement for judgement in self.judgements if judgement.kind != "correct"]

    @property
    def has_scores(self) -> bool:
        """Whether any prediction has a score."""
        return any(judgement.predicted and judgement.predicted.score is not None for judgement in self.judgements)

    def most_confident(self, most: int = MOST) -> list[Judgement]:
        """The wrong predictions with the highest scores, the first in the text first; none without scores (``has_scores``)."""
        scored = [
            (-claim.score, judgement)
            for judgement in self.mistakes
            if (claim := judgement.predicted) is not None and claim.score is not None
        ]
        return [judgement for _, judgement in sorted(scored, key=lambda row: row[0])[:most]]

    def confused_strings(self, most: int = MOST) -> list[ConfusedString]:
        """The mistakes that are made most often with the same types and texts; of equally many, the first in the text first."""
        groups: dict[tuple[object, ...], list[Judgement]] = {}
        for judgement in self.mistakes:
            names = ((claim.type, claim.text) if claim else None for claim in (judgement.gold, judgement.predicted))
            groups.setdefault((judgement.kind, *names), []).append(judgement)
        often = sorted(groups.values(), key=lambda group: -len(group))[:most]
        return [ConfusedString(group[0].kind, len(group), group[0]) for group in often]

    def to_json(self) -> dict[str, Any]:
        """The numbers and the two lists; ``judgements`` have a JSON of their own."""
        return {
            **self.score.to_json(),
            "counts": dict(self.counts),
            "rates": dict(self.rates),
            "published_rates": dict(self.published_rates),
            "confusion": self.confusion.to_json(),
            "has_scores": self.has_scores,
            "most_confident": [judgement.to_json() for judgement in self.most_confident()],
            "confused_strings": [string.to_json() for string in self.confused_strings()],
        }


def errors(gold: Iterable[Sentence], predicted: Output) -> Errors:
    """Judge predicted sentences against gold ones; see ``pair`` for which belongs to which.

    >>> from spanwise.core.types import Entity
    >>> words = ("Oslo", "and", "New", "York")
    >>> right = Sentence("s1", words, (Entity("Place", ((0, 1),)), Entity("Place", ((2, 4),))))
    >>> found = Sentence("s1", words, (Entity("Team", ((0, 1),)), Entity("Place", ((3, 4),)), Entity("Food", ((1, 2),))))
    >>> {kind: count for kind, count in errors([right], [found]).counts.items() if count}
    {'type': 1, 'boundary': 1, 'spurious': 1}
    """
    gold = list(gold)
    pairing = pair(gold, predicted)
    judgements: list[Judgement] = []
    confusion, support, claims, correct, boundary, type = Confusion(), 0, 0, 0, 0, 0
    for both, numbers in zip(pairing.pairs, gold_numbers(gold, pairing), strict=True):
        right, found = entity_items(both.gold), entity_items(both.predicted)
        support, claims, correct = support + len(right), claims + len(found), correct + len(right & found)
        boundaries, types = _published(right, found)
        boundary, type = boundary + boundaries, type + types
        confusion.add(right, found)
        judgements += judge(both, numbers)
    return Errors(tuple(judgements), Score(support, claims, correct), confusion, boundary, type)


def _published(gold: set[EntityItem], predicted: set[EntityItem]) -> tuple[int, int]:
    """Boundary errors and type errors as the paper defines them."""
    words = {word for item in gold for word in covered(item)}
    places = {fragments for _, fragments in gold}
    wrong = predicted - gold
    types = sum(fragments in places for _, fragments in wrong)
    return sum(not words.isdisjoint(covered(item)) for item in wrong) - types, types
