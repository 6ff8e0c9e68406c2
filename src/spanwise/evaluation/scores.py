"""Precision, recall and F1 from counts: of one kind of thing, by type, and their averages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

from spanwise.core.types import Sentence, Span

# What is compared: a tuple that begins with a type. Sets of them, so that what is given twice counts once.
Item: TypeAlias = tuple[Any, ...]
EntityItem: TypeAlias = tuple[str, tuple[Span, ...]]


def entity_items(sentence: Sentence | None) -> set[EntityItem]:
    """The distinct entities of a sentence as (type, fragments); none for a sentence that is not there."""
    return {(entity.type, entity.fragments) for entity in sentence.entities} if sentence is not None else set()


def ratio(part: float, whole: float) -> float:
    """A share; nothing of nothing is 0."""
    return part / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class Score:
    """``support`` things in gold, ``predicted`` ones, of which ``correct`` are in gold.

    Precision is 0 where nothing was predicted, recall is 0 where gold has nothing, and F1, their harmonic mean, is 0 where
    both are.

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
    """The plain means of precision, recall and F1 over a number of types. (The mean F1 is not the F1 of the two means.)"""

    precision: float
    recall: float
    f1: float
    types: int

    def to_json(self) -> dict[str, Any]:
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, "types": self.types}


@dataclass(frozen=True)
class Scores:
    """The scores of each type, those with most support first, and their averages.

    ``micro`` counts over all types together, so a spurious thing of a type that gold does not have lowers its precision.
    ``macro`` averages over the types that gold has; a type that was never predicted enters with zeros. A type without gold
    is in ``types`` with a support of 0 and zero scores, and is no part of ``macro``: it would let a system that invents
    type names change the number of types that the average is taken over.
    """

    types: Mapping[str, Score]

    @property
    def micro(self) -> Score:
        return summed(self.types.values())

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


def summed(scores: Iterable[Score]) -> Score:
    """The score of all things together."""
    counts = [(score.support, score.predicted, score.correct) for score in scores]
    return Score(*map(sum, zip(*counts, strict=True))) if counts else Score()


class Tally:
    """Counts what is right, sentence by sentence. An item is right when the other side has exactly the same.

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
        """How many of this sentence's items are correct, predicted and in gold."""
        correct = gold & predicted
        for counter, items in ((self._support, gold), (self._predicted, predicted), (self._correct, correct)):
            for item in items:
                counter[item[0]] += 1
        return len(correct), len(predicted), len(gold)

    @property
    def scores(self) -> Scores:
        types = sorted(self._support.keys() | self._predicted.keys(), key=lambda t: (-self._support[t], t))
        return Scores({t: Score(self._support[t], self._predicted[t], self._correct[t]) for t in types})
