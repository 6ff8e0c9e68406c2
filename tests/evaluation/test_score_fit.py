"""The fitted scale of scores, compared with a search over a grid, and its effect on calibration."""

from __future__ import annotations

from itertools import product
from math import exp, log
from random import Random

import pytest

from spanwise.core.types import Entity, Sentence
from spanwise.decoding.score_scale import ScoreScale, log_odds
from spanwise.evaluation.calibration import calibration, calibration_errors, scored_predictions
from spanwise.evaluation.score_fit import MIN_PREDICTIONS, fit_scale


def draw(count: int, temperature: float, bias: float = 0.0, seed: int = 1) -> list[tuple[float, bool]]:
    """Scores from 0.5 to 1 and outcomes whose probability is that of the calibrated score."""
    random, scale = Random(seed), ScoreScale(temperature, bias)
    scores = [round(1 / (1 + exp(-random.uniform(0, 7))), 6) for _ in range(count)]
    return [(score, random.random() < scale.calibrate(score)) for score in scores]


def likelihood(rows: list[tuple[float, bool]], slope: float, bias: float) -> float:
    """The log-likelihood with the targets of Platt's method."""
    right = sum(is_correct for _, is_correct in rows)
    targets = {True: (right + 1) / (right + 2), False: 1 / (len(rows) - right + 2)}
    total = 0.0
    for score, is_correct in rows:
        p, t = 1 / (1 + exp(-(slope * log_odds(score) + bias))), targets[is_correct]
        total += t * log(p) + (1 - t) * log(1 - p)
    return total


@pytest.mark.parametrize(("temperature", "bias"), [(2.0, 0.0), (0.6, 0.0), (1.5, -1.5)])
def test_the_fit_is_the_best_of_a_grid(temperature: float, bias: float) -> None:
    rows = draw(400, temperature, bias)
    scale = fit_scale(rows)
    assert scale is not None
    best = likelihood(rows, 1 / scale.temperature, scale.bias)
    biases = [scale.bias + 0.1 * step for step in (-3, -1, 1, 3)] if scale.bias else []
    slopes = [(1 + 0.03 * step) / scale.temperature for step in (-5, -1, 0, 1, 5)]
    assert all(likelihood(rows, slope, other) < best + 1e-3 for slope, other in product(slopes, [*biases, scale.bias]))
    assert scale.temperature == pytest.approx(temperature, rel=0.35)


def test_a_bias_is_added_only_where_the_temperature_is_not_enough() -> None:
    plain = [fit_scale(draw(500, 1.7, seed=seed)) for seed in range(8)]
    shifted = [fit_scale(draw(500, 1.7, -1.5, seed=seed)) for seed in range(8)]
    assert sum(scale is not None and scale.bias == 0 for scale in plain) >= 6  # chance adds one to about one in six
    assert all(scale is not None and -2.3 < scale.bias < -0.7 for scale in shifted)


def test_too_few_predictions_give_no_scale() -> None:
    assert fit_scale(draw(MIN_PREDICTIONS - 1, 2.0)) is None
    assert fit_scale(draw(MIN_PREDICTIONS, 2.0)) is not None
    assert fit_scale([]) is None


def test_extreme_outcomes_give_a_finite_monotone_scale() -> None:
    scores = [score for score, _ in draw(80, 1.0)]
    for outcome in (True, False):
        scale = fit_scale((score, outcome) for score in scores)
        assert scale is not None
        assert 0.05 <= scale.temperature <= 20
    middle = sorted(scores)[40]
    reversed_scale = fit_scale((score, score < middle) for score in scores)  # the lower score is correct
    assert reversed_scale is not None
    assert reversed_scale.temperature > 0
    certain = fit_scale([(1.0, index % 2 == 0) for index in range(100)])
    assert certain is not None
    assert certain.calibrate(1.0) == pytest.approx(0.5, abs=0.02) or certain.temperature == 20


def test_calibration_lowers_the_error_of_other_predictions() -> None:
    """Fitted on one half, measured on the other."""

    def sentences(rows: list[tuple[float, bool]]) -> tuple[list[Sentence], list[Sentence]]:
        gold = [Sentence(f"{i}", ("w",), (Entity("X" if ok else "Y", ((0, 1),)),)) for i, (_, ok) in enumerate(rows)]
        predicted = [Sentence(f"{i}", ("w",), (Entity("X", ((0, 1),), score),)) for i, (score, _) in enumerate(rows)]
        return gold, predicted

    dev, test = (sentences(draw(1000, 3.0, seed=seed)) for seed in (1, 2))
    assert scored_predictions(*dev) == sorted(draw(1000, 3.0, seed=1))
    scale = fit_scale(scored_predictions(*dev))
    assert scale is not None
    gold, predicted = test
    errors = calibration_errors(gold, predicted, [scale.apply(sentence) for sentence in predicted])
    assert errors is not None
    assert errors.before > 0.1
    assert errors.after < 0.04
    assert errors.predictions == 1000
    whole = [calibration(gold, sentences) for sentences in (predicted, [scale.apply(sentence) for sentence in predicted])]
    assert [errors.before, errors.after] == [one.expected_error for one in whole]
    bare = [Sentence(s.id, s.words, tuple(Entity(e.type, e.fragments) for e in s.entities)) for s in predicted]
    assert calibration_errors(gold, bare, bare) is None
