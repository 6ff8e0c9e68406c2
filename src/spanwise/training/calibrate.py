"""Calibrate the scores of a trained model on dev."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spanwise.config.settings import CalibrationSettings
from spanwise.core.types import Corpus, Sentence
from spanwise.decoding.score_scale import ScoreScale
from spanwise.evaluation.calibration import calibration_errors
from spanwise.evaluation.score_fit import MIN_PREDICTIONS, fit_predictions
from spanwise.models.model import Model
from spanwise.runs.folder import RunFolder
from spanwise.runtime.device import is_main_process


def calibrate(
    model: Model, corpus: Corpus, predicted: Mapping[str, Sequence[Sentence]], folder: RunFolder, log: Callable[[str], None]
) -> dict[str, Any]:
    """Fit the scale of scores on the predictions on dev and save it in the model; return what the report says.

    ``predicted`` has the scores of the head, by split. Which entities are predicted does not change.
    """
    scale = fit_predictions(corpus["dev"], predicted["dev"])
    if scale is None:
        return {"note": f"scores are not calibrated: fewer than {MIN_PREDICTIONS} predicted entities on dev, or no scores"}
    model.config = model.config.model_copy(
        update={"calibration": CalibrationSettings(temperature=scale.temperature, bias=scale.bias)}
    )
    if is_main_process():
        folder.write_config(model.config)
    errors = _errors(corpus, predicted, scale)
    bias = f" and a bias of {scale.bias:g}" if scale.bias else ""
    changes = ", ".join(f"{split} {row['before']:.3f} → {row['after']:.3f}" for split, row in errors.items() if row)
    log(f"scores are calibrated with a temperature of {scale.temperature:g}{bias}: expected calibration error {changes}")
    return {"temperature": scale.temperature, "bias": scale.bias, **errors}


def _errors(corpus: Corpus, predicted: Mapping[str, Sequence[Sentence]], scale: ScoreScale) -> dict[str, Any]:
    """The expected calibration error of each split before and after."""
    errors = {}
    for split, before in predicted.items():
        split_errors = calibration_errors(corpus[split], before, [scale.apply(sentence) for sentence in before])
        errors[split] = None if split_errors is None else split_errors.to_json()
    return errors
