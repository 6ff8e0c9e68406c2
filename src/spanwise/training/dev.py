"""The dev split during training: read as prediction reads it, prepared once for all epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanwise.core.types import Sentence
from spanwise.evaluation.tasks import Entities
from spanwise.heads.base import Head
from spanwise.models.model import Model
from spanwise.prediction.kept_recall import kept_recall
from spanwise.prediction.predictor import predict_with
from spanwise.prediction.windows import pieces_of, put_together


class Dev:
    """Gold sentences of dev, and what a model that is learning finds in them: long ones are judged in windows."""

    def __init__(self, model: Model, gold: Sequence[Sentence], context: Sequence[Sentence]) -> None:
        self.model, self.gold = model, gold
        self._pieces = gold if model.needs_spans else [piece for sentence in gold for piece in pieces_of(sentence)]
        self._prepared = model.encoder.prepare(self._pieces, context)
        # What a head keeps of gold is counted in whole sentences.
        self._whole = model.encoder.prepare(gold, context) if model.head.prediction_head.prunes else []

    def scores(self) -> tuple[dict[str, Any], list[Sentence]]:
        """The model's scores as it is now, those of a bundle's branches among them, and the sentences as it predicts them."""
        head = self.model.head
        found = self._found([head.prediction_head, *head.branches.values()])
        scores = self.model.task.dev(self.gold, found[head.prediction_head])
        if head.prediction_head.prunes:
            scores["kept_recall"] = kept_recall(self.model, self.gold, self._whole)
        if head.branches:
            scores["branches"] = {name: Entities().dev(self.gold, found[branch]) for name, branch in head.branches.items()}
        return scores, found[head.prediction_head]

    def _found(self, heads: list[Head]) -> dict[Head, list[Sentence]]:
        found = predict_with(heads, self.model, self._pieces, self._prepared)
        if self.model.needs_spans:
            return found
        return {head: list(put_together(self.gold, iter(own))) for head, own in found.items()}
