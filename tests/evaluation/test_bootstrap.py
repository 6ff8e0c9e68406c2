"""Statistical properties of the bootstrap interval."""

from __future__ import annotations

import random

import numpy as np
import pytest

from spanwise.evaluation.bootstrap import MIN_UNITS, Interval, f1_interval


def test_perfect_and_useless_predictions_have_no_variance() -> None:
    assert f1_interval([(n, n, n) for n in range(30)]) == Interval(1.0, 1.0)
    assert f1_interval([(0, 2, 3)] * 30) == Interval(0.0, 0.0)


def test_no_interval_without_entities() -> None:
    assert f1_interval([]) is None
    assert f1_interval([(0, 0, 0)] * 10) is None


def test_no_interval_for_few_sentences_with_entities() -> None:
    """Sentences without entities do not count: resamples of a few sentences vary too little."""
    enough = [(1, 1, 1)] * MIN_UNITS
    assert f1_interval(enough[1:]) is None
    assert f1_interval([(0, 0, 0)] * 500 + enough[1:]) is None
    assert f1_interval(enough) == Interval(1.0, 1.0)
    assert f1_interval([*enough[1:], (0, 1, 0)]) is not None  # an entity in the predictions only


def test_result_depends_on_the_seed_but_not_on_the_order() -> None:
    counts = [(n % 3, n % 4 + 2, n % 5 + 2) for n in range(200)]
    shuffled = random.Random(1).sample(counts, len(counts))
    assert f1_interval(counts) == f1_interval(counts) == f1_interval(shuffled)
    assert f1_interval(counts, seed=1) != f1_interval(counts, seed=2)


def test_interval_matches_a_direct_bootstrap() -> None:
    """The quantiles of drawing single sentences, up to chance."""
    rng = np.random.default_rng(5)
    counts = _sample(rng, 150)
    interval = f1_interval([tuple(row) for row in counts.tolist()], resamples=20_000)
    drawn = counts[rng.integers(0, len(counts), size=(20_000, len(counts)))].sum(axis=1)
    low, high = np.quantile(2 * drawn[:, 0] / (drawn[:, 1] + drawn[:, 2]), [0.025, 0.975])
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.002)


def test_more_sentences_and_lower_levels_narrow_the_interval() -> None:
    rng = np.random.default_rng(3)
    counts = [tuple(row) for row in _sample(rng, 400).tolist()]

    def width(interval: Interval | None) -> float:
        assert interval is not None
        return interval.high - interval.low

    # Four times the sentences halve the interval.
    assert width(f1_interval(counts * 4)) == pytest.approx(width(f1_interval(counts)) / 2, rel=0.15)
    assert width(f1_interval(counts, level=0.8)) < width(f1_interval(counts)) < width(f1_interval(counts, level=0.99))


def test_coverage_matches_the_level() -> None:
    """400 test sets of 150 sentences with a known F1: about 95 % of the intervals contain it."""
    rng = np.random.default_rng(7)
    # Two gold entities per sentence, 70 % correct; 0.6 spurious: F1 = 2 * 1.4 / (1.4 + 0.6 + 2).
    truth = 2 * 1.4 / (2.0 + 2.0)
    intervals = [f1_interval([tuple(row) for row in _sample(rng, 150).tolist()], resamples=400, seed=n) for n in range(400)]
    inside = sum(interval is not None and interval.low <= truth <= interval.high for interval in intervals)
    assert 0.91 <= inside / len(intervals) <= 0.98


def _sample(rng: np.random.Generator, sentences: int) -> np.ndarray:
    """Correct, predicted and gold counts of sentences, with errors that cluster in difficult sentences."""
    gold = rng.poisson(2.0, sentences)
    ease = rng.beta(3.5, 1.5, sentences)  # 0.7 on average
    correct = rng.binomial(gold, ease)
    return np.stack([correct, correct + rng.poisson(0.6, sentences), gold], axis=1)
