"""Relaxed score: an entity matches if the other side has an entity of the same type that shares a word with it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from spanwise.core.types import word_indices_in
from spanwise.evaluation.scores import EntityItem, Score, ratio


@dataclass(frozen=True, slots=True)
class RelaxedScore(Score):
    """Precision and recall of overlapping entities.

    ``correct`` counts the predictions that share a word with a gold entity of their type,
    ``matched_gold`` the gold entities that share a word with a prediction of their type. Precision
    uses the first, recall the second.

    One entity may match several on the other side. This is the overlap matching of the i2b2
    challenges (Sun, Rumshisky and Uzuner 2013, "Evaluating temporal relations in clinical text: 2012
    i2b2 Challenge"), which needs no arbitrary choice between overlapping entities. It accepts an
    entity that is split in two, or two entities that are merged; read it together with the strict
    score.
    """

    matched_gold: int = 0

    @property
    def recall(self) -> float:
        return ratio(self.matched_gold, self.support)

    def to_json(self) -> dict[str, Any]:
        return {**Score.to_json(self), "matched_gold": self.matched_gold}


class RelaxedTally:
    """Accumulate the counts of a relaxed score, sentence by sentence.

    >>> tally = RelaxedTally()
    >>> tally.add({("Place", ((0, 2),))}, {("Place", ((0, 1),)), ("Place", ((1, 2),)), ("Food", ((0, 2),))})
    >>> tally.score
    RelaxedScore(support=1, predicted=3, correct=2, matched_gold=1)
    """

    def __init__(self) -> None:
        self._support = self._predicted = self._correct = self._matched_gold = 0

    def add(self, gold: Set[EntityItem], predicted: Set[EntityItem]) -> None:
        self._support += len(gold)
        self._predicted += len(predicted)
        if gold and predicted:
            self._correct += _count_overlapping(predicted, gold)
            self._matched_gold += _count_overlapping(gold, predicted)

    @property
    def score(self) -> RelaxedScore:
        return RelaxedScore(self._support, self._predicted, self._correct, self._matched_gold)


def _count_overlapping(items: Set[EntityItem], others: Set[EntityItem]) -> int:
    """Count the items that share a word with another of their type. Words between fragments do not count."""
    covered: dict[str, set[int]] = {}
    for type, fragments in others:
        covered.setdefault(type, set()).update(word_indices_in(fragments))
    return sum(type in covered and not covered[type].isdisjoint(word_indices_in(fragments)) for type, fragments in items)
