"""Separate a mixture of two kinds of rows, of which one kind is known from examples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spanwise.audit.logistic import fit_logistic

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
STEPS = 15  # of expectation and maximisation
STRENGTH = 100.0  # rows that the expected share of errors counts for
MAX_SHARE = 0.5  # of errors before the rows are seen
MIN_EXAMPLES = 20  # with fewer examples or rows nothing is fitted


def log_odds_of_errors(disagreements: Floats, simulated: Floats, expected: float, is_certainty: Bools | None = None) -> Floats:
    """The log-odds that each row of ``disagreements`` is an error like the rows of ``simulated``.

    The others are mistakes of the models. The densities of both differ by a factor that is log-linear in
    the features: a logistic regression of errors against mistakes, fitted by expectation maximisation. In
    each step, a disagreement counts as an error with its current probability. ``expected`` is the number of
    errors that is assumed at first. The result never falls with features in ``is_certainty``.
    """
    if min(len(disagreements), len(simulated)) < MIN_EXAMPLES:
        return _without_examples(disagreements, expected)
    rows = np.concatenate((disagreements, simulated))
    scaled = (rows - simulated.mean(0)) / (rows.std(0) + 1e-6)
    count = len(disagreements)
    share = first_share = min(MAX_SHARE, expected / count)
    probabilities = np.full(count, share)
    # All disagreements twice, as errors and as mistakes of the models, then the simulated errors.
    design = np.concatenate((scaled[:count], scaled))
    targets = np.repeat((1.0, 0.0, 1.0), (count, count, len(simulated)))
    values = np.zeros(count)
    for _ in range(STEPS):
        # Errors have the total weight `count`; simulated ones have what the disagreements leave.
        rest = (count - probabilities.sum()) / len(simulated)
        weights = np.concatenate((probabilities, 1 - probabilities, np.full(len(simulated), rest)))
        coefficients = fit_logistic(design, targets, weights, is_certainty)
        ratios = coefficients[0] + scaled[:count] @ coefficients[1:] - np.log(count / (1 - probabilities).sum())
        values = ratios + np.log(share / (1 - share))
        probabilities = 1 / (1 + np.exp(-np.clip(values, -30, 30)))
        share = float((probabilities.sum() + STRENGTH * first_share) / (count + STRENGTH))
    return values


def _without_examples(disagreements: Floats, expected: float) -> Floats:
    """Rank by the first features, the log-odds of the models, if nothing can be fitted."""
    share = min(MAX_SHARE, expected / len(disagreements))
    certainty = disagreements[:, :3].sum(1)
    values: Floats = certainty - certainty.mean() + np.log(share / (1 - share))
    return values
