"""Logistic regression by Newton's method, for a few features."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
PENALTY = 5.0  # of squared weights of standardised features; the intercept is free
STEPS = 50


def fit_logistic(rows: Floats, targets: Floats, weights: Floats, is_positive: Bools | None = None) -> Floats:
    """Return the intercept and the weights [features + 1] of the regression of ``targets`` (0 or 1) on ``rows``.

    Features in ``is_positive`` must not have negative weights: those that would are omitted one after
    another, the most negative first.

    >>> rows = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    >>> fit_logistic(rows, np.array([0.0, 1.0, 1.0, 1.0]), np.ones(4)).round(2).tolist()
    [1.11, 0.17]
    """
    used = np.ones(rows.shape[1], np.bool_)
    while True:
        coefficients = np.zeros(rows.shape[1] + 1)
        coefficients[np.concatenate(([True], used))] = _fit(rows[:, used], targets, weights)
        if is_positive is None or not (negative := is_positive & (coefficients[1:] < 0)).any():
            return coefficients
        used[np.argmin(np.where(negative, coefficients[1:], 0.0))] = False


def _fit(rows: Floats, targets: Floats, weights: Floats) -> Floats:
    design = np.concatenate((np.ones((len(rows), 1)), rows), 1)
    penalty = np.full(design.shape[1], PENALTY)
    penalty[0] = 1e-6
    coefficients = np.zeros(design.shape[1])
    for _ in range(STEPS):
        probabilities = 1 / (1 + np.exp(-np.clip(design @ coefficients, -30, 30)))
        gradient = design.T @ (weights * (targets - probabilities)) - penalty * coefficients
        curvature = weights * np.maximum(probabilities * (1 - probabilities), 1e-9)
        hessian = (design * curvature[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        coefficients = coefficients + step
        if np.abs(step).max() < 1e-9:
            break
    return coefficients
