"""The scale of scores: monotone, invertible, and consistent with thresholds."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spanwise.core.types import Entity, Link, Relation, Sentence
from spanwise.decoding.score_scale import ScoreScale

SCALES = st.builds(ScoreScale, st.floats(0.2, 8.0), st.floats(-4.0, 4.0))
SCORES = st.integers(1, 1_000_000).map(lambda number: number / 1_000_000)


@given(SCALES, SCORES)
def test_calibration_divides_the_log_odds_and_adds_the_bias(scale: ScoreScale, score: float) -> None:
    clipped = min(max(score, 5e-7), 1 - 5e-7)
    expected = 1 / (1 + exp(-(log(clipped / (1 - clipped)) / scale.temperature + scale.bias)))
    assert scale.calibrate(score) == pytest.approx(expected, abs=1e-6)


@given(SCALES, SCORES, SCORES)
def test_the_order_of_scores_stays(scale: ScoreScale, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert scale.calibrate(low) <= scale.calibrate(high)


@given(SCALES, SCORES, SCORES)
def test_a_threshold_selects_the_same_before_and_after_calibration(scale: ScoreScale, score: float, threshold: float) -> None:
    if threshold > 0:
        bound = scale.lower_bound(threshold)
        if abs(score - bound) > 1e-9:  # rounding of floating-point numbers decides between equal scores
            assert (score >= bound) == (scale.calibrate(score) >= threshold - 1e-12)
    assert scale.lower_bound(0.0) == 0.0


@given(SCALES, SCORES)
@example(ScoreScale(2.0), 1.0)
@example(ScoreScale(0.5), 0.9999)
def test_the_highest_threshold_keeps_only_scores_of_1(scale: ScoreScale, score: float) -> None:
    assert (score >= scale.lower_bound(1.0)) == (scale.calibrate(score) == 1)


@given(SCALES, st.floats(0.05, 0.95))
def test_inversion(scale: ScoreScale, score: float) -> None:
    calibrated = scale.calibrate(score)
    if 0.01 < calibrated < 0.99:
        assert scale.invert(calibrated) == pytest.approx(score, abs=1e-3)


def test_relations_and_entities_without_scores_stay() -> None:
    scale, relation = ScoreScale(2.0), Relation("r", 0, 1, score=0.9)
    sentence = Sentence("s", ("a", "b"), (Entity("X", ((0, 1),), 0.9), Entity("X", ((1, 2),))), (relation,))
    calibrated = scale.apply(sentence)
    assert [entity.score for entity in calibrated.entities] == [0.75, None]
    assert calibrated.relations[0].score == 0.9
    assert [entity.score for entity in scale.undo(calibrated).entities] == [0.9, None]
    assert ScoreScale().apply(sentence) is sentence
    assert ScoreScale().is_identity


def test_everything_but_scores_stays() -> None:
    entities = (Entity("X", ((0, 1), (2, 3)), 0.9, extra={"note": "n"}), Entity("Y", ((1, 2),), 0.6))
    place = {"text": "a  b c ", "document": "d", "position": 3, "start": 40}
    plain = Sentence("s", ("a", "b", "c"), entities, (Relation("r", 1, 0),), pos=("N", "V", "N"), extra={"x": 1}, **place)
    for sentence in (plain, replace(plain, links=(Link("l", 0, 4, 2),)), replace(plain, annotated=("X",))):
        calibrated = ScoreScale(2.0).apply(sentence)
        assert calibrated == sentence
        assert calibrated.extra == {"x": 1}
        assert [entity.score for entity in calibrated.entities] == [0.75, pytest.approx(0.55051, abs=1e-5)]
        assert [entity.extra for entity in calibrated.entities] == [{"note": "n"}, None]


def test_thresholds_are_converted() -> None:
    scale = ScoreScale(2.0)
    assert scale.to_head(0.75) == pytest.approx(0.9, abs=1e-5)
    assert scale.to_head(0.0) == 0.0
    assert scale.to_head({"X": 0.75, "Y": 0.0}) == pytest.approx({"X": 0.9, "Y": 0.0}, abs=1e-5)
    assert ScoreScale().to_head({"X": 0.3}) == {"X": 0.3}
