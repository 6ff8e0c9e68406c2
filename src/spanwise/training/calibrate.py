"""Calibrate the scores of a trained model on dev."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spanwise.config.settings import CalibrationSettings
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.decoding.score_scale import ScoreScale
from spanwise.evaluation.calibration import ScoredPredictions, compare_errors, scored_predictions
from spanwise.evaluation.score_fit import MIN_PREDICTIONS, fit_scale
from spanwise.models.model import Model
from spanwise.runs.folder import RunFolder
from spanwise.runtime.device import is_main_process


def calibrate(
    model: Model, corpus: Corpus, predicted: Mapping[str, Sequence[Sentence]], folder: RunFolder, log: Callable[[str], None]
) -> dict[str, Any]:
    """Fit the scale of scores on the predictions on dev and save it in the model; return what the report says.

    ``predicted`` has the scores of the head, by split. Which entities are predicted does not change.
    """
    scored = {split: _score(corpus[split], sentences) for split, sentences in predicted.items()}
    scale = fit_scale(scored["dev"])
    if scale is None:
        return {"note": f"scores are not calibrated: fewer than {MIN_PREDICTIONS} predicted entities on dev, or no scores"}
    model.config = model.config.model_copy(
        update={"calibration": CalibrationSettings(temperature=scale.temperature, bias=scale.bias)}
    )
    if is_main_process():
        folder.write_config(model.config)
    errors = {split: _errors(rows, scale) for split, rows in scored.items()}
    bias = f" and a bias of {scale.bias:g}" if scale.bias else ""
    changes = ", ".join(f"{split} {row['before']:.3f} → {row['after']:.3f}" for split, row in errors.items() if row)
    log(f"scores are calibrated with a temperature of {scale.temperature:g}{bias}: expected calibration error {changes}")
    return {"temperature": scale.temperature, "bias": scale.bias, **errors}


def _score(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> ScoredPredictions:
    """The score of each predicted entity and whether it is correct; empty if some have no score."""
    try:
        return scored_predictions(gold, predicted)
    except SpanwiseError:
        return []


def _errors(before: ScoredPredictions, scale: ScoreScale) -> dict[str, Any] | None:
    """The expected calibration error before and after; None without predictions."""
    after = sorted((scale.calibrate(score), is_correct) for score, is_correct in before)
    errors = compare_errors(before, after)
    return None if errors is None else errors.to_json()
