"""Tune a trained model on dev, predict the splits of its corpus, and score the predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spanwise.core.types import Corpus, Sentence
from spanwise.heads import head_values
from spanwise.heads.abilities import Tunable, find_ability
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.runtime.device import is_main_process
from spanwise.training.data import all_sentences


def tune(model: Model, corpus: Corpus, out: Path) -> None:
    """Choose automatic settings of the head on dev and save the model with them."""
    head = find_ability(model.head, Tunable)
    if head is not None and head.tune(corpus["dev"], lambda: predict(model, corpus["dev"], context=all_sentences(corpus))):
        model.config = model.config.model_copy(update={"head": head_values(model.head)})
        if is_main_process():
            model.save(out)


def score_splits(model: Model, corpus: Corpus, splits: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Predict and score the splits that exist, in the format of ``evaluate --json``."""
    return score_predictions(model, corpus, predict_splits(model, corpus, splits))


def predict_splits(model: Model, corpus: Corpus, splits: Iterable[str]) -> dict[str, list[Sentence]]:
    """Predict the splits that exist; scores are those of the head."""
    context = all_sentences(corpus)
    return {split: list(predict(model, corpus[split], context=context)) for split in splits if split in corpus}


def score_predictions(model: Model, corpus: Corpus, predicted: Mapping[str, list[Sentence]]) -> dict[str, dict[str, Any]]:
    return {split: model.task.score_split(corpus[split], rows, corpus["train"]) for split, rows in predicted.items()}
