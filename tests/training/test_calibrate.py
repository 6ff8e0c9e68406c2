"""Calibration after training: the report has the errors of the sentences as a loaded model predicts them."""

from __future__ import annotations

import random
from pathlib import Path

from tiny import model, quiet

from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.decoding.score_scale import ScoreScale
from spanwise.evaluation.calibration import calibration_errors
from spanwise.runs.folder import RunFolder
from spanwise.training.calibrate import calibrate


def predictions(count: int, seed: int) -> tuple[tuple[Sentence, ...], list[Sentence]]:
    """Gold and predicted sentences with overconfident scores and, sometimes, the same entity twice."""
    choose = random.Random(seed)
    gold, predicted = [], []
    for number in range(count):
        words, score = ("Oslo", "or", "York"), round(choose.uniform(0.5, 1.0), 6)
        gold.append(Sentence(f"{number}", words, (Entity("Place" if choose.random() < score - 0.2 else "Drug", ((0, 1),)),)))
        twice = Entity("Place", ((0, 1),), round(score / 2, 6))
        predicted.append(Sentence(f"{number}", words, (Entity("Place", ((0, 1),), score), twice)[: 1 + number % 2]))
    return tuple(gold), predicted


def test_the_reported_errors_are_those_of_calibrated_sentences(tmp_path: Path) -> None:
    built = model("static", "seqner")
    dev, test = predictions(200, 1), predictions(90, 2)
    corpus, predicted = Corpus({"dev": dev[0], "test": test[0], "empty": dev[0][:1]}), {"dev": dev[1], "test": test[1]}
    predicted["empty"] = [Sentence("0", dev[0][0].words)]
    report = calibrate(built, corpus, predicted, RunFolder(tmp_path), quiet)
    scale = ScoreScale(report["temperature"], report["bias"])
    assert not scale.is_identity
    assert report["empty"] is None
    for split in ("dev", "test"):
        errors = calibration_errors(corpus[split], predicted[split], [scale.apply(sentence) for sentence in predicted[split]])
        assert errors is not None
        assert report[split] == errors.to_json()
    assert built.config.calibration is not None
    assert built.config.calibration.temperature == scale.temperature


def test_predictions_without_scores_are_not_calibrated(tmp_path: Path) -> None:
    built, (gold, predicted) = model("static", "seqner"), predictions(60, 1)
    predicted[7] = Sentence("7", predicted[7].words, (Entity("Place", ((0, 1),)),))
    report = calibrate(built, Corpus({"dev": gold}), {"dev": predicted}, RunFolder(tmp_path), quiet)
    assert list(report) == ["note"]
    assert built.config.calibration is None
