"""Fit the scale of a model's scores on dev, so that 0.8 means correct four times in five."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from spanwise.decoding.score_scale import ScoreScale, log_odds

MIN_PREDICTIONS = 50  # on dev; with fewer, chance would choose the scale
MIN_SLOPE, MAX_SLOPE = 0.05, 20.0  # of the log-odds, the inverse of the temperature
STEPS = 100

Floats = npt.NDArray[np.float64]


def fit_scale(scored: Iterable[tuple[float, bool]]) -> ScoreScale | None:
    """Return the scale with the highest likelihood of predictions, given as score and whether it is correct.

    A bias is added only if the Akaike information criterion prefers it to a temperature alone. None
    if there are too few predictions. As in Platt's method, no prediction counts as certainly correct
    or wrong, so that the result is finite even if all are correct.

    >>> rows = [(0.9, index % 4 != 0) for index in range(100)]
    >>> scale = fit_scale(rows)
    >>> scale.calibrate(0.9)
    0.749517
    """
    rows = list(scored)
    if len(rows) < MIN_PREDICTIONS:
        return None
    x = np.array([log_odds(score) for score, _ in rows])
    is_correct = np.array([correct for _, correct in rows], bool)
    right, wrong = int(is_correct.sum()), int((~is_correct).sum())
    targets = np.where(is_correct, (right + 1) / (right + 2), 1 / (wrong + 2))
    slope, loss = _fit(x[:, None], targets)
    both, loss_of_both = _fit(np.stack((x, np.ones_like(x)), 1), targets)
    if both[0] > MIN_SLOPE and loss - loss_of_both > 1:
        return ScoreScale(round(1 / float(both[0]), 4), round(float(both[1]), 4))
    return ScoreScale(round(1 / float(slope[0]), 4))


def _fit(features: Floats, targets: Floats) -> tuple[Floats, float]:
    """Logistic regression by Newton's method; the first weight, the slope, stays positive. Returns weights and loss."""
    weights = np.zeros(features.shape[1])
    weights[0] = 1.0
    for _ in range(STEPS):
        probability = 1 / (1 + np.exp(-(features @ weights)))
        gradient = features.T @ (probability - targets)
        curvature = (features * (probability * (1 - probability))[:, None]).T @ features + 1e-6 * np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        scale = 1.0
        while scale > 1e-4 and _loss(features, targets, _bounded(weights - scale * step)) > _loss(features, targets, weights):
            scale /= 2
        updated = _bounded(weights - scale * step)
        if np.abs(updated - weights).max() < 1e-9:
            break
        weights = updated
    return weights, _loss(features, targets, weights)


def _bounded(weights: Floats) -> Floats:
    return np.concatenate((weights[:1].clip(MIN_SLOPE, MAX_SLOPE), weights[1:].clip(-MAX_SLOPE, MAX_SLOPE)))


def _loss(features: Floats, targets: Floats, weights: Floats) -> float:
    values = features @ weights
    return float((np.logaddexp(0, values) - targets * values).sum())
