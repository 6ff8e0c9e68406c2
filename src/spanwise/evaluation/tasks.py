"""Training tasks, and the metric by which epochs, seeds and settings are compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from spanwise.core.partial import without_open
from spanwise.core.percentages import percent
from spanwise.core.types import Sentence
from spanwise.evaluation.evaluation import evaluate
from spanwise.evaluation.relations import micro_relations
from spanwise.evaluation.scores import Score, Tally, entity_items
from spanwise.evaluation.typing import format_typing, score_typing

MIN_RELATIONS = 50  # of dev; with fewer, chance would select the epoch


class Task(ABC):
    """How a model is scored during and after training.

    ``metric`` is the name of the number by which runs are compared, ``metric_key`` its key in JSON.
    """

    metric: ClassVar[str]
    metric_key: ClassVar[str]

    @abstractmethod
    def score_dev(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> dict[str, Any]:
        """Score the dev split after an epoch, for the metrics file; both sides are in the same order."""

    @abstractmethod
    def selection_score(self, dev: Mapping[str, Any]) -> float:
        """Return the number that selects the best epoch, from the result of ``score_dev``."""

    @abstractmethod
    def format_epoch(self, dev: Mapping[str, Any]) -> str:
        """Format the result of ``score_dev`` as one line."""

    @abstractmethod
    def score_split(self, gold: Iterable[Sentence], predicted: Iterable[Sentence], train: Iterable[Sentence]) -> dict[str, Any]:
        """Score a split after training, as JSON."""

    @abstractmethod
    def metric_value(self, scores: Mapping[str, Any]) -> float:
        """Return the metric, from the result of ``score_split``."""

    def selection_metric(self, scores: Mapping[str, Any]) -> tuple[str, float]:
        """Return the name and value of the number that selects settings, from the result of ``score_split``."""
        return self.metric, self.metric_value(scores)

    @abstractmethod
    def format_scores(self, scores: Mapping[str, Any]) -> list[str]:
        """Format the result of ``score_split``; lines after the first start with their own name."""


class EntityTask(Task):
    """Find entities, scored by strict micro F1.

    With relations, epochs are selected by the mean of the micro F1 of entities and of relations, if dev
    has at least ``MIN_RELATIONS``.
    """

    metric, metric_key = "F1", "f1"

    def __init__(self, finds_relations: bool = False) -> None:
        self.finds_relations = finds_relations

    def score_dev(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> dict[str, Any]:
        gold, tally = list(gold), Tally()
        predicted = [without_open(one, other) for one, other in zip(gold, predicted, strict=True)]
        for gold_sentence, predicted_sentence in zip(gold, predicted, strict=True):
            tally.add(entity_items(gold_sentence), entity_items(predicted_sentence))
        dev: dict[str, Any] = _rates(tally.scores.micro)
        if self.finds_relations:
            relations = micro_relations(gold, predicted)
            dev["relations"] = {**_rates(relations), "support": relations.support}
        return dev

    def selection_score(self, dev: Mapping[str, Any]) -> float:
        relations = dev.get("relations")
        if relations is None or relations.get("support", MIN_RELATIONS) < MIN_RELATIONS:
            return float(dev["f1"])
        return float(dev["f1"] + relations["f1"]) / 2

    def format_epoch(self, dev: Mapping[str, Any]) -> str:
        relations = f", relations F1 {percent(dev['relations']['f1'])}" if "relations" in dev else ""
        return f"{_format_rates(dev)}{relations}"

    def score_split(self, gold: Iterable[Sentence], predicted: Iterable[Sentence], train: Iterable[Sentence]) -> dict[str, Any]:
        return evaluate(gold, predicted, train=train, finds_relations=self.finds_relations).to_json()

    def metric_value(self, scores: Mapping[str, Any]) -> float:
        return float(scores["micro"]["f1"])

    def selection_metric(self, scores: Mapping[str, Any]) -> tuple[str, float]:
        if scores.get("relations") is None:
            return super().selection_metric(scores)
        relations = scores["relations"]["strict"]["micro"]["f1"]
        return "mean F1 of entities and relations", (self.metric_value(scores) + relations) / 2

    def format_scores(self, scores: Mapping[str, Any]) -> list[str]:
        micro = scores["micro"]
        lines = [
            f"{_format_rates(micro)} (macro F1 {percent(scores['macro']['f1'])}; {micro['predicted']:,} predicted, "
            f"{micro['correct']:,} correct of {micro['support']:,} in gold)"
        ]
        if (relations := scores.get("relations")) is not None:
            strict, boundaries = relations["strict"]["micro"], relations["boundaries"]["micro"]
            lines.append(
                f"relations: {_format_rates(strict)} (macro F1 {percent(relations['strict']['macro']['f1'])}; "
                f"boundaries only {percent(boundaries['f1'])})"
            )
        return lines


class TypingTask(Task):
    """Type given spans, scored by accuracy."""

    metric, metric_key = "typing accuracy", "accuracy"

    def score_dev(self, gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> dict[str, Any]:
        return {"typing": {"accuracy": score_typing(gold, predicted).accuracy}}

    def selection_score(self, dev: Mapping[str, Any]) -> float:
        return self.metric_value(dev)

    def format_epoch(self, dev: Mapping[str, Any]) -> str:
        return f"typing accuracy {percent(self.metric_value(dev))}"

    def score_split(self, gold: Iterable[Sentence], predicted: Iterable[Sentence], train: Iterable[Sentence]) -> dict[str, Any]:
        return score_typing(gold, predicted, train).to_json()

    def metric_value(self, scores: Mapping[str, Any]) -> float:
        return float(scores["typing"]["accuracy"])

    def format_scores(self, scores: Mapping[str, Any]) -> list[str]:
        return [format_typing(scores)]


TASKS = ("entities", "typing")


def task_from_scores(scores: Mapping[str, Any]) -> Task:
    """Return the task that produced the scores of a split."""
    return TypingTask() if "typing" in scores else EntityTask(scores.get("relations") is not None)


def _rates(score: Score) -> dict[str, float]:
    return {"precision": score.precision, "recall": score.recall, "f1": score.f1}


def _format_rates(rates: Mapping[str, float]) -> str:
    return f"P {percent(rates['precision'])} R {percent(rates['recall'])} F1 {percent(rates['f1'])}"
