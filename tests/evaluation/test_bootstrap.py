"""The bootstrap interval behaves as theory says."""

from __future__ import annotations

import random

import numpy as np
import pytest

from spanwise.evaluation.bootstrap import FEWEST, Interval, f1_interval


def test_perfect_and_hopeless_predictions_leave_no_doubt() -> None:
    assert f1_interval([(n, n, n) for n in range(30)]) == Interval(1.0, 1.0)
    assert f1_interval([(0, 2, 3)] * 30) == Interval(0.0, 0.0)


def test_no_entities_no_interval() -> None:
    assert f1_interval([]) is None
    assert f1_interval([(0, 0, 0)] * 10) is None


def test_few_sentences_with_entities_no_interval() -> None:
    """However many there are without: resamples of a few sentences repeat them, and make them look surer than they are."""
    enough = [(1, 1, 1)] * FEWEST
    assert f1_interval(enough[1:]) is None
    assert f1_interval([(0, 0, 0)] * 500 + enough[1:]) is None
    assert f1_interval(enough) == Interval(1.0, 1.0)
    assert f1_interval([*enough[1:], (0, 1, 0)]) is not None  # one that only the system sees


def test_the_seed_decides_and_the_order_of_sentences_does_not() -> None:
    counts = [(n % 3, n % 4 + 2, n % 5 + 2) for n in range(200)]
    shuffled = random.Random(1).sample(counts, len(counts))
    assert f1_interval(counts) == f1_interval(counts) == f1_interval(shuffled)
    assert f1_interval(counts, seed=1) != f1_interval(counts, seed=2)


def test_it_is_what_drawing_sentences_one_by_one_gives() -> None:
    """The same quantiles as a literal bootstrap, up to chance."""
    rng = np.random.default_rng(5)
    counts = _sample(rng, 150)
    interval = f1_interval([tuple(row) for row in counts.tolist()], resamples=20_000)
    drawn = counts[rng.integers(0, len(counts), size=(20_000, len(counts)))].sum(axis=1)
    low, high = np.quantile(2 * drawn[:, 0] / (drawn[:, 1] + drawn[:, 2]), [0.025, 0.975])
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=0.002)


def test_more_sentences_and_lower_levels_make_it_narrower() -> None:
    rng = np.random.default_rng(3)
    counts = [tuple(row) for row in _sample(rng, 400).tolist()]

    def width(interval: Interval | None) -> float:
        assert interval is not None
        return interval.high - interval.low

    # Four times the sentences halve the interval.
    assert width(f1_interval(counts * 4)) == pytest.approx(width(f1_interval(counts)) / 2, rel=0.15)
    assert width(f1_interval(counts, level=0.8)) < width(f1_interval(counts)) < width(f1_interval(counts, level=0.99))


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    """400 test sets of 150 sentences from a population whose F1 is known: about 95 % of the intervals contain it."""
    rng = np.random.default_rng(7)
    # Two gold entities a sentence, 70 % found; 0.6 spurious: F1 = 2 * 1.4 / (1.4 + 0.6 + 2).
    truth = 2 * 1.4 / (2.0 + 2.0)
    intervals = [f1_interval([tuple(row) for row in _sample(rng, 150).tolist()], seed=n) for n in range(400)]
    inside = sum(interval is not None and interval.low <= truth <= interval.high for interval in intervals)
    assert 0.91 <= inside / len(intervals) <= 0.98


def _sample(rng: np.random.Generator, sentences: int) -> np.ndarray:
    """Counts of sentences as correct, predicted, gold, with errors that cluster in hard sentences."""
    gold = rng.poisson(2.0, sentences)
    ease = rng.beta(3.5, 1.5, sentences)  # 0.7 on average
    correct = rng.binomial(gold, ease)
    return np.stack([correct, correct + rng.poisson(0.6, sentences), gold], axis=1)
