"""Precision, recall and F1 from counts, per type and averaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

from spanwise.core.types import Sentence, Span

# An item to compare: a tuple that starts with a type. Items are kept in sets, so that duplicates count once.
Item: TypeAlias = tuple[Any, ...]
EntityItem: TypeAlias = tuple[str, tuple[Span, ...]]


def entity_items(sentence: Sentence | None) -> set[EntityItem]:
    """Return the distinct entities of a sentence as (type, fragments); empty for None."""
    return {(entity.type, entity.fragments) for entity in sentence.entities} if sentence is not None else set()


def ratio(part: float, whole: float) -> float:
    """Return part / whole, or 0 if whole is 0."""
    return part / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class Score:
    """Precision, recall and F1 of ``predicted`` items, ``correct`` of which are among ``support`` gold items.

    Precision is 0 without predictions, recall is 0 without gold items, and F1 is 0 if both are.

    >>> score = Score(support=4, predicted=2, correct=1)
    >>> score.precision, score.recall, round(score.f1, 4)
    (0.5, 0.25, 0.3333)
    """

    support: int = 0
    predicted: int = 0
    correct: int = 0

    @property
    def precision(self) -> float:
        return ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        return ratio(self.correct, self.support)

    @property
    def f1(self) -> float:
        return ratio(2 * self.precision * self.recall, self.precision + self.recall)

    def to_json(self) -> dict[str, Any]:
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "support": self.support,
            "predicted": self.predicted,
            "correct": self.correct,
        }


@dataclass(frozen=True, slots=True)
class Macro:
    """Unweighted means of precision, recall and F1 over types. The mean F1 is not the F1 of the means."""

    precision: float
    recall: float
    f1: float
    types: int

    def to_json(self) -> dict[str, Any]:
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, "types": self.types}


@dataclass(frozen=True)
class Scores:
    """Scores of each type, the most frequent in gold first, and their averages.

    ``micro`` counts over all types, so a prediction of a type that gold does not have lowers its
    precision. ``macro`` averages over the types in gold; a type that was never predicted counts as 0.
    Types without gold are in ``types`` but not in ``macro``, so that a system cannot change the number
    of averaged types by inventing new ones.
    """

    types: Mapping[str, Score]

    @property
    def micro(self) -> Score:
        return sum_scores(self.types.values())

    @property
    def macro(self) -> Macro:
        scores = [score for score in self.types.values() if score.support]
        return Macro(
            precision=ratio(sum(score.precision for score in scores), len(scores)),
            recall=ratio(sum(score.recall for score in scores), len(scores)),
            f1=ratio(sum(score.f1 for score in scores), len(scores)),
            types=len(scores),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "micro": self.micro.to_json(),
            "macro": self.macro.to_json(),
            "types": {type: score.to_json() for type, score in self.types.items()},
        }


def sum_scores(scores: Iterable[Score]) -> Score:
    """Return the score over the summed counts."""
    counts = [(score.support, score.predicted, score.correct) for score in scores]
    return Score(*map(sum, zip(*counts, strict=True))) if counts else Score()


class Tally:
    """Accumulate counts sentence by sentence. A predicted item is correct if gold has an equal item.

    >>> tally = Tally()
    >>> tally.add({("Place", 1), ("Place", 2)}, {("Place", 1), ("Food", 2)})
    (1, 2, 2)
    >>> tally.scores.types["Place"]
    Score(support=2, predicted=1, correct=1)
    """

    def __init__(self) -> None:
        self._support: Counter[str] = Counter()
        self._predicted: Counter[str] = Counter()
        self._correct: Counter[str] = Counter()

    def add(self, gold: Set[Item], predicted: Set[Item]) -> tuple[int, int, int]:
        """Add one sentence and return its numbers of correct, predicted and gold items."""
        correct = gold & predicted
        for counter, items in ((self._support, gold), (self._predicted, predicted), (self._correct, correct)):
            for item in items:
                counter[item[0]] += 1
        return len(correct), len(predicted), len(gold)

    @property
    def scores(self) -> Scores:
        types = sorted(self._support.keys() | self._predicted.keys(), key=lambda name: (-self._support[name], name))
        return Scores({type: Score(self._support[type], self._predicted[type], self._correct[type]) for type in types})
