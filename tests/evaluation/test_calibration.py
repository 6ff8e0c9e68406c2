"""Reliability, calibration error and thresholds, checked by hand and against slow references."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import Entity, Relation, Sentence, SpanwiseError
from spanwise.evaluation import apply_threshold, calibration, evaluate
from spanwise.evaluation.calibration import MAX_POINTS, relation_calibration, score_at_threshold
from spanwise.evaluation.threshold_search import search_threshold

Row = tuple[float, bool]


def data(rows: list[Row], missed: int = 0, types: str = "X") -> tuple[list[Sentence], list[Sentence]]:
    """A sentence for each prediction, with alternating types, and one for each missed gold entity."""
    gold, predicted = [], []
    for number, (score, is_correct) in enumerate(rows):
        type, words = types[number % len(types)], ("a", "b")
        gold.append(Sentence(str(number), words, (Entity(type, ((0, 1),)),) if is_correct else ()))  # type: ignore[arg-type]
        predicted.append(Sentence(str(number), words, (Entity(type, ((0, 1),), score),)))  # type: ignore[arg-type]
    gold += [Sentence(f"m{n}", ("a",), (Entity(types[0], ((0, 1),)),)) for n in range(missed)]  # type: ignore[arg-type]
    return gold, predicted


def test_bins_by_hand() -> None:
    rows = [(0.1, False), (0.2, True), (0.2, False), (0.55, True), (0.6, True), (1.0, True), (0.0, False)]
    result = calibration(*data(rows), bins=5)
    # (0, 0.2] including 0, (0.2, 0.4], (0.4, 0.6], (0.6, 0.8], (0.8, 1]: an edge belongs to the bin below.
    assert [(b.low, b.high) for b in result.equal_width] == [(n / 5, (n + 1) / 5) for n in range(5)]
    assert [(b.count, b.correct) for b in result.equal_width] == [(4, 1), (0, 0), (2, 2), (0, 0), (1, 1)]
    assert [b.mean_score for b in result.equal_width] == [pytest.approx(0.125), None, pytest.approx(0.575), None, 1.0]
    assert [b.precision for b in result.equal_width] == [0.25, None, 1.0, None, 1.0]
    # (4 |0.125 - 0.25| + 2 |0.575 - 1| + 1 |1 - 1|) / 7
    assert result.expected_error == pytest.approx((4 * 0.125 + 2 * 0.425) / 7)


def test_bins_of_equal_count() -> None:
    rows = [(0.9, True), (0.91, True), (0.92, False), (0.93, True), (0.94, True), (0.95, True)]
    result = calibration(*data(rows), bins=3)
    assert [(b.high, b.count, b.correct) for b in result.equal_count] == [(0.91, 2, 2), (0.93, 2, 1), (1.0, 2, 2)]
    expected = (abs(1.81 - 2) + abs(1.85 - 1) + abs(1.89 - 2)) / 6
    assert result.expected_error_equal_count == pytest.approx(expected)
    # In one bin of equal width, scores that are too high and too low cancel out.
    assert result.expected_error == pytest.approx(abs(sum(score for score, _ in rows) - 5) / 6)


def test_calibrated_scores_have_a_low_error_and_doubled_scores_a_high_error() -> None:
    rng = np.random.default_rng(1)
    scores = rng.uniform(0, 1, 4_000).round(6).tolist()
    calibrated = [(score, bool(rng.uniform() < score)) for score in scores]
    assert calibration(*data(calibrated)).expected_error < 0.03
    too_high = [(score, bool(rng.uniform() < score / 2)) for score in scores]
    assert calibration(*data(too_high)).expected_error == pytest.approx(0.25, abs=0.03)  # the mean of s - s / 2


def test_curve_by_hand() -> None:
    rows = [(0.9, True), (0.7, False), (0.7, True), (0.3, True)]
    result = calibration(*data(rows, missed=1))
    assert [(p.threshold, p.score.predicted, p.score.correct) for p in result.curve] == [(0.9, 1, 1), (0.7, 3, 2), (0.3, 4, 3)]
    assert {p.score.support for p in result.curve} == {4}
    assert (result.unfiltered.predicted, result.unfiltered.correct) == (4, 3)
    # F1: 2/5, 4/7, 6/8. No threshold is considered below the lowest score, unless ``min_threshold`` is given.
    assert result.best is not None
    assert (result.best.threshold, result.best.score.f1) == (0.3, 0.75)
    assert calibration(*data(rows, missed=1), min_threshold=0.2).best.threshold == 0.25  # type: ignore[union-attr]


def test_best_threshold_of_each_type() -> None:
    rows = [(0.9, True), (0.4, True), (0.8, False), (0.3, False), (0.7, False), (0.2, True)]  # X: 0.9, 0.8, 0.7; Y: the rest
    result = calibration(*data(rows, types="XY"))
    assert result.types["X"] is not None
    assert result.types["Y"] is not None
    assert (result.types["X"].threshold, result.types["X"].score.f1) == (0.85, 1.0)
    assert (result.types["Y"].threshold, result.types["Y"].score.f1) == (0.2, 0.8)
    without_correct = calibration(*data([(0.9, False)], missed=2))
    assert without_correct.best is None
    assert without_correct.types == {"X": None}


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.1, 0.25, 0.5, 0.500001, 0.9, 1.0]), st.booleans()), min_size=1), st.integers(0, 3))
def test_best_threshold_has_the_highest_f1(rows: list[Row], missed: int) -> None:
    gold, predicted = data(rows, missed)
    result = calibration(gold, predicted)
    scores = [
        evaluate(gold, apply_threshold(predicted, threshold)).f1 for threshold in (0, 0.2, 0.3, 0.5, 0.5000005, 0.7, 0.95)
    ]
    assert (result.best.score.f1 if result.best else 0.0) == pytest.approx(max(scores))
    if result.best:
        assert result.best.threshold >= min(score for score, _ in rows), "not below the lowest score"
        assert evaluate(gold, apply_threshold(predicted, result.best.threshold)).entities.micro == result.best.score
        assert score_at_threshold(gold, predicted, result.best.threshold) == result.best
    for point in result.curve:
        assert evaluate(gold, apply_threshold(predicted, point.threshold)).entities.micro == point.score


def test_a_long_curve_is_thinned_and_keeps_its_last_point() -> None:
    chance = random.Random(2)
    rows = [(round(chance.random(), 6), chance.random() < 0.5) for _ in range(1_500)]
    result = calibration(*data(rows))
    assert MAX_POINTS / 2 < len(result.curve) <= MAX_POINTS
    assert result.curve[-1].score == result.unfiltered
    thresholds = [point.threshold for point in result.curve]
    assert thresholds == sorted(thresholds, reverse=True)


def test_duplicates_count_once() -> None:
    gold, _ = data([(0.5, True)])
    predicted = [Sentence("0", ("a", "b"), (Entity("X", ((0, 1),), 0.3), Entity("X", ((0, 1),), 0.8)))]  # type: ignore[arg-type]
    result = calibration(gold, predicted)
    assert [(p.threshold, p.score.predicted) for p in result.curve] == [(0.8, 1)]


@pytest.mark.parametrize(
    ("score", "message"),
    [(None, "have no score"), (1.5, "expected scores between 0 and 1, found .* 1.5"), (-0.1, "between 0 and 1")],
)
def test_invalid_scores_are_errors(score: float | None, message: str) -> None:
    gold, _ = data([(0.5, True)])
    with pytest.raises(SpanwiseError, match=message):
        calibration(gold, [Sentence("0", ("a", "b"), (Entity("X", ((0, 1),), score),))])  # type: ignore[arg-type]
    with pytest.raises(SpanwiseError, match="no predicted entities"):
        calibration(gold, [])
    with pytest.raises(SpanwiseError, match="at least one bin"):
        calibration(gold, gold, bins=0)


def test_json_and_text() -> None:
    gold, predicted = data([(0.9, True), (0.2, False), (0.8, True), (0.4, False)], missed=1)
    result = search_threshold(gold, predicted)
    record = json.loads(json.dumps(result.to_json()))
    assert (record["threshold"], record["best"]["correct"], record["default"]) == (0.6, 2, None)
    assert record["types"]["X"]["f1"] == pytest.approx(0.8)
    assert result.lines == [
        "best threshold on these predictions: 0.6 (F1 80.00; without a threshold 57.14)",
        "  X: 0.6 (F1 80.00)",
        "gold entities that are not predicted at any threshold: 1 of 3",
        "the threshold is chosen and scored on the same predictions; expect a lower F1 on other data",
    ]
    all_wrong = search_threshold(*data([(0.9, False)], missed=1))
    assert (all_wrong.threshold, len(all_wrong.lines)) == (0.0, 1)


def test_precision_and_recall_of_relations_by_threshold() -> None:
    """A relation is correct if its type and both entities are; gold has two, of which one is predicted twice."""
    words = ("a", "b", "c", "d")
    entities = tuple(Entity("X", ((n, n + 1),)) for n in range(4))  # type: ignore[arg-type]
    gold = Sentence("s", words, entities, (Relation("r", 0, 1), Relation("r", 2, 3)))
    relations = [Relation("r", 0, 1, 0.9), Relation("r", 1, 0, 0.6), Relation("q", 2, 3, 0.5), Relation("r", 2, 3, 0.3)]
    result = relation_calibration([gold], [replace(gold, relations=(*relations, Relation("r", 0, 1, 0.2)))])
    points = [(point.threshold, point.score.precision, point.score.recall) for point in result.curve]
    assert points == [(0.9, 1.0, 0.5), (0.6, 0.5, 0.5), (0.5, pytest.approx(1 / 3), 0.5), (0.3, 0.5, 1.0)]
    assert result.best is not None
    assert result.best.score.f1 == pytest.approx(2 / 3)
    with pytest.raises(SpanwiseError, match="some predicted relations have no score"):
        relation_calibration([gold], [gold])
    with pytest.raises(SpanwiseError, match="there are no predicted relations"):
        relation_calibration([gold], [replace(gold, relations=())])
