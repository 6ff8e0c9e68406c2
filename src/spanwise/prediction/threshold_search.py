"""Search for a model's best threshold on dev."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.corpora.splits import open_splits
from spanwise.evaluation.calibration import calibration, score_at_threshold
from spanwise.evaluation.threshold_search import ThresholdSearch
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.scoring import predict_split

RELATIONS = "chosen for entities; relations keep their own threshold"
BEST_LABELS = "this model predicts only the best label of each span or word; a threshold can only remove predictions"


def find_dev_split(data: str | Path, format: str | None = None) -> str:
    """Return the split on which a threshold is chosen: dev, the part of train that training held out, or the unnamed one."""
    splits = tuple(open_splits(data, format))
    if splits == ("all",):
        return "all"
    if "dev" not in splits and "train" not in splits:
        raise _no_dev(data, splits)
    return "dev"


def _no_dev(data: str | Path, splits: Iterable[str]) -> SpanwiseError:
    return SpanwiseError(f"{data}: --find-threshold needs a dev split; found {', '.join(splits)}")


def find_threshold(
    predictor: BasePredictor, data: str | Path, *, format: str | None = None, batch_size: int = 64
) -> ThresholdSearch:  # fmt: skip
    """Find the threshold with the best F1 on the dev split, or on a single unnamed split.

    The model predicts once, with its threshold lowered to ``predictor.min_threshold``. The more probable of
    two conflicting entities wins, so the predictions above a threshold equal those of a model that
    uses this threshold.
    """
    find_dev_split(data, format)
    if predictor.needs_spans:
        raise SpanwiseError("this model types every given span and has no threshold")
    lowest = predictor.min_threshold
    # Without a dev split, the part that training held out, if the model was trained on this data.
    result = predict_split(predictor, data, split="dev", format=format, threshold=lowest, batch_size=batch_size)
    if result.split == "train":
        raise _no_dev(data, result.corpus)
    default = predictor.default_threshold
    notes = [BEST_LABELS] * (default is None) + [RELATIONS] * predictor.finds_relations
    calibrated = calibration(result.gold, result.predicted, min_threshold=None if default is None else lowest)
    at_default = None if default is None else score_at_threshold(result.gold, result.predicted, default)
    return ThresholdSearch(result.split, calibrated, at_default, "; ".join(notes))
