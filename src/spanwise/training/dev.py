"""Scores on the dev split during training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanwise.core.types import Sentence
from spanwise.evaluation.tasks import EntityTask
from spanwise.heads.abilities import Prunes, Tunable, find_ability
from spanwise.heads.base import Head
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict_with_heads
from spanwise.prediction.pruning_recall import pruning_recall
from spanwise.prediction.windows import merge_windows, split_into_windows


class DevScorer:
    """Predicts dev in the same way as a loaded model (long sentences in windows) and scores the result.

    The sentences are prepared once for all epochs.
    """

    def __init__(self, model: Model, gold: Sequence[Sentence], context: Sequence[Sentence]) -> None:
        self.model, self.gold = model, gold
        self._windows = gold if model.needs_spans else [window for s in gold for window in split_into_windows(s)]
        self._prepared = model.encoder.prepare(self._windows, context)
        # Gold spans that survive pruning are counted in whole sentences.
        self._pruning_head = find_ability(model.head, Prunes)
        self._prepared_gold = [] if self._pruning_head is None else model.encoder.prepare(gold, context)

    def score(self) -> tuple[dict[str, Any], list[Sentence]]:
        """Return the current scores, with those of each branch of a bundle, and the predicted sentences."""
        head = self.model.head
        predicted = self._predict_tuned([head.prediction_head, *head.branches.values()])
        scores = self.model.task.score_dev(self.gold, predicted[head.prediction_head])
        if self._pruning_head is not None:
            scores["pruning_recall"] = pruning_recall(self.model, self._pruning_head, self.gold, self._prepared_gold)
        if head.branches:
            task = EntityTask()
            scores["branches"] = {name: task.score_dev(self.gold, predicted[branch]) for name, branch in head.branches.items()}
        return scores, predicted[head.prediction_head]

    def _predict_tuned(self, heads: list[Head]) -> dict[Head, list[Sentence]]:
        """Predict once with all heads; the first of them with the settings that are best on dev now."""
        tunable = find_ability(heads[0], Tunable)
        if tunable is None:
            return self._predict(heads)
        predicted: dict[Head, list[Sentence]] = {}

        def predict() -> list[Sentence]:
            predicted.update(self._predict(heads))
            return predicted[heads[0]]

        first = tunable.predict_tuned(self.gold, predict)
        return {**predicted, heads[0]: first}

    def _predict(self, heads: list[Head]) -> dict[Head, list[Sentence]]:
        predicted = predict_with_heads(heads, self.model, self._windows, self._prepared)
        if self.model.needs_spans:
            return predicted
        return {head: list(merge_windows(self.gold, iter(windows))) for head, windows in predicted.items()}
