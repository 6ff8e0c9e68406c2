"""The relaxed score: an entity is found when the other side has one of its type that shares a word with it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from spanwise.evaluation.scores import EntityItem, Score, ratio


@dataclass(frozen=True, slots=True)
class RelaxedScore(Score):
    """Precision is the share of the predicted entities that share a word with a gold entity of their type (``correct``),
    recall the share of the gold entities that share a word with a predicted one of their type (``found``).

    One entity may answer for several on the other side: this is the overlap matching of the i2b2 challenges (Sun, Rumshisky
    and Uzuner 2013, "Evaluating temporal relations in clinical text: 2012 i2b2 Challenge"), which needs no arbitrary choice
    between two that overlap. It thus forgives an entity split in two, and one entity that swallows two; read it beside the
    strict score.
    """

    found: int = 0

    @property
    def recall(self) -> float:
        return ratio(self.found, self.support)

    def to_json(self) -> dict[str, Any]:
        return {**Score.to_json(self), "found": self.found}


class RelaxedTally:
    """Counts overlaps, sentence by sentence.

    >>> tally = RelaxedTally()
    >>> tally.add({("Place", ((0, 2),))}, {("Place", ((0, 1),)), ("Place", ((1, 2),)), ("Food", ((0, 2),))})
    >>> tally.score
    RelaxedScore(support=1, predicted=3, correct=2, found=1)
    """

    def __init__(self) -> None:
        self._support = self._predicted = self._correct = self._found = 0

    def add(self, gold: Set[EntityItem], predicted: Set[EntityItem]) -> None:
        self._support += len(gold)
        self._predicted += len(predicted)
        if gold and predicted:
            self._correct += _touching(predicted, gold)
            self._found += _touching(gold, predicted)

    @property
    def score(self) -> RelaxedScore:
        return RelaxedScore(self._support, self._predicted, self._correct, self._found)


def _touching(items: Set[EntityItem], others: Set[EntityItem]) -> int:
    """How many items share a word with another of their type. Words between the fragments of an entity are not its own."""
    covered: dict[str, set[int]] = {}
    for type, fragments in others:
        words = covered.setdefault(type, set())
        for start, end in fragments:
            words.update(range(start, end))
    nothing: set[int] = set()
    return sum(
        any(not covered.get(type, nothing).isdisjoint(range(start, end)) for start, end in fragments)
        for type, fragments in items
    )
