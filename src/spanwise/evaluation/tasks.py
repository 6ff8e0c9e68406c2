"""What a model is trained for, and by which figure its epochs, seeds and settings are then compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from spanwise.core.types import Sentence
from spanwise.evaluation.evaluation import evaluate
from spanwise.evaluation.relations import micro_relations
from spanwise.evaluation.scores import Score, Tally, entity_items
from spanwise.evaluation.typing import typing_line, typing_scores


class Task(ABC):
    """``figure`` names the number by which runs are compared, ``key`` is its short name in JSON."""

    figure: ClassVar[str]
    key: ClassVar[str]

    @abstractmethod
    def dev(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> dict[str, Any]:
        """What the metrics say of an epoch; sentences stand in the same order."""

    @abstractmethod
    def best(self, dev: Mapping[str, Any]) -> float:
        """The number that chooses between epochs, from what ``dev`` gave."""

    @abstractmethod
    def epoch(self, dev: Mapping[str, Any]) -> str:
        """What ``dev`` gave, for people."""

    @abstractmethod
    def scores(self, gold: Iterable[Sentence], predicted: Iterable[Sentence], train: Iterable[Sentence]) -> dict[str, Any]:
        """All that is said of a split when training is over, as JSON."""

    @abstractmethod
    def value(self, scores: Mapping[str, Any]) -> float:
        """The figure, from what ``scores`` gave."""

    def choice(self, scores: Mapping[str, Any]) -> tuple[str, float]:
        """The number that chooses between settings, from what ``scores`` gave, and its name."""
        return self.figure, self.value(scores)

    @abstractmethod
    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        """What ``scores`` gave, for people: the first line is of the split, what follows begins with a name of its own."""


class Entities(Task):
    """To find entities: strict micro F1. Where relations are found too, epochs are chosen by the mean of both micro F1."""

    figure, key = "F1", "f1"

    def __init__(self, finds_relations: bool = False) -> None:
        self.finds_relations = finds_relations

    def dev(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> dict[str, Any]:
        gold, predicted, tally = list(gold), list(predicted), Tally()
        for one, other in zip(gold, predicted, strict=True):
            tally.add(entity_items(one), entity_items(other))
        dev: dict[str, Any] = _rates(tally.scores.micro)
        if self.finds_relations:
            dev["relations"] = _rates(micro_relations(gold, predicted))
        return dev

    def best(self, dev: Mapping[str, Any]) -> float:
        return float(dev["f1"] + dev["relations"]["f1"]) / 2 if "relations" in dev else float(dev["f1"])

    def epoch(self, dev: Mapping[str, Any]) -> str:
        relations = f", relations F1 {dev['relations']['f1']:.4f}" if "relations" in dev else ""
        return f"P {dev['precision']:.4f} R {dev['recall']:.4f} F1 {dev['f1']:.4f}{relations}"

    def scores(self, gold: Iterable[Sentence], predicted: Iterable[Sentence], train: Iterable[Sentence]) -> dict[str, Any]:
        return evaluate(gold, predicted, train=train, finds_relations=self.finds_relations).to_json()

    def value(self, scores: Mapping[str, Any]) -> float:
        return float(scores["micro"]["f1"])

    def choice(self, scores: Mapping[str, Any]) -> tuple[str, float]:
        if scores.get("relations") is None:
            return super().choice(scores)
        relations = scores["relations"]["strict"]["micro"]["f1"]
        return "mean F1 of entities and relations", (self.value(scores) + relations) / 2

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        micro = scores["micro"]
        lines = [
            f"P {micro['precision']:.4f} R {micro['recall']:.4f} F1 {micro['f1']:.4f} "
            f"(macro F1 {scores['macro']['f1']:.4f}; {micro['correct']:,} of {micro['support']:,} found, "
            f"{micro['predicted']:,} predicted)"
        ]
        if (relations := scores.get("relations")) is not None:
            strict, bounds = relations["strict"]["micro"], relations["boundaries"]["micro"]
            lines.append(
                f"relations: P {strict['precision']:.4f} R {strict['recall']:.4f} F1 {strict['f1']:.4f} "
                f"(macro F1 {relations['strict']['macro']['f1']:.4f}; boundaries only {bounds['f1']:.4f})"
            )
        return lines


class GivenSpans(Task):
    """To type given spans: accuracy."""

    figure, key = "typing accuracy", "accuracy"

    def dev(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> dict[str, Any]:
        return {"typing": {"accuracy": typing_scores(gold, predicted).accuracy}}

    def best(self, dev: Mapping[str, Any]) -> float:
        return self.value(dev)

    def epoch(self, dev: Mapping[str, Any]) -> str:
        return f"typing accuracy {self.value(dev):.4f}"

    def scores(self, gold: Iterable[Sentence], predicted: Iterable[Sentence], train: Iterable[Sentence]) -> dict[str, Any]:
        return typing_scores(gold, predicted, train).to_json()

    def value(self, scores: Mapping[str, Any]) -> float:
        return float(scores["typing"]["accuracy"])

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        return [typing_line(scores)]


TASKS = ("entities", "typing")


def task_of(scores: Mapping[str, Any]) -> Task:
    """The task that a split's scores are of."""
    return GivenSpans() if "typing" in scores else Entities(scores.get("relations") is not None)


def _rates(score: Score) -> dict[str, float]:
    return {"precision": score.precision, "recall": score.recall, "f1": score.f1}
