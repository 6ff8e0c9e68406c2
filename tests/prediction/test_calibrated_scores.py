"""Calibrated scores of loaded and exported models: the same entities, other scores, consistent thresholds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import tiny
from tiny import corpus, quiet, with_relations

import spanwise
from spanwise import Sentence
from spanwise.config.settings import CalibrationSettings
from spanwise.decoding.score_scale import ScoreScale
from spanwise.decoding.thresholds import apply_threshold
from spanwise.evaluation import calibration
from spanwise.export.onnx import export_onnx
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.prediction.scoring import score_model
from spanwise.prediction.threshold_search import find_threshold
from spanwise.runs.folder import RunFolder
from spanwise.serve.batching import Query

DATA = corpus(60, 60, 20)
SCALE = ScoreScale(1.7, -0.4)
Key = tuple[str, tuple[object, ...]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "run"
    settings = ("head.size=8", "head.dropout=0.0", "encoder.char_hidden=4")  # scores of all sizes
    tiny.fit(out, DATA, settings, recipe="global-pointer", epochs=4, head_rate=0.02)
    return out


def with_scale(model: Path, out: Path, scale: ScoreScale | None) -> Path:
    """A copy of a model with other calibration settings."""
    folder = RunFolder(shutil.copytree(model, out))
    settings = None if scale is None else CalibrationSettings(temperature=scale.temperature, bias=scale.bias)
    folder.write_config(folder.read_config().model_copy(update={"calibration": settings}))
    return out


def scores(sentences: Iterable[Sentence]) -> dict[tuple[str, str, object], float]:
    return {(s.id, e.type, e.fragments): e.score or 0.0 for s in sentences for e in s.entities}


def test_training_calibrates_scores_on_dev(trained: Path, tmp_path: Path) -> None:
    report = json.loads((trained / "run.json").read_text())["calibration"]
    settings = RunFolder(trained).read_config().calibration
    assert settings is not None
    assert (settings.temperature, settings.bias) == (report["temperature"], report["bias"])
    assert report["dev"]["after"] < report["dev"]["before"]
    model = Model.load(trained)
    assert report["dev"]["predictions"] == len(scores(predict(model, DATA["dev"])))
    predictor = spanwise.load(trained, "cpu")
    assert scores(predictor.predict(DATA["test"])) == {
        key: predictor.scale.calibrate(score) for key, score in scores(predict(model, DATA["test"])).items()
    }
    lines: list[str] = []
    tiny.fit(tmp_path / "small", epochs=1, log=lines.append)
    report = json.loads((tmp_path / "small" / "run.json").read_text())["calibration"]
    assert "scores are not calibrated: fewer than 50" in report["note"]
    assert RunFolder(tmp_path / "small").read_config().calibration is None


@pytest.mark.parametrize("runtime", ["torch", "onnx"])
def test_scores_change_and_predictions_do_not(trained: Path, tmp_path: Path, runtime: str) -> None:
    folders = [with_scale(trained, tmp_path / name, scale) for name, scale in (("raw", None), ("calibrated", SCALE))]
    if runtime == "onnx":
        for folder in folders:
            export_onnx(folder, tmp_path / f"{folder.name}-onnx", log=quiet)
        folders = [tmp_path / f"{folder.name}-onnx" for folder in folders]
    raw, calibrated = (spanwise.load(folder, "cpu") for folder in folders)
    before, after = scores(raw.predict(DATA["test"])), scores(calibrated.predict(DATA["test"]))
    assert after == pytest.approx({key: SCALE.calibrate(score) for key, score in before.items()}, abs=2e-5)
    assert calibrated.default_threshold == pytest.approx(SCALE.calibrate(0.5))

    # A threshold selects by the scores that users see, above and below the model's own.
    everything = calibrated.predict(DATA["test"], threshold=calibrated.min_threshold)
    assert len(scores(everything)) > len(after) > 5
    values = sorted(scores(everything).values())
    for threshold in (values[2], values[len(values) // 2], values[-3], 0.7):
        expected = scores(apply_threshold(everything, threshold))
        assert scores(calibrated.predict(DATA["test"], threshold=threshold)) == expected
    by_type = {"Drug": values[len(values) // 3]}
    drugs = {key: score for key, score in scores(everything).items() if key[1] == "Drug" and score >= by_type["Drug"]}
    places = {key: score for key, score in after.items() if key[1] == "Place"}
    assert scores(calibrated.predict(DATA["test"], threshold=by_type)) == {**drugs, **places}


def test_thresholds_are_found_and_saved_for_calibrated_scores(trained: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for split, rows in DATA.splits.items():
        spanwise.write(rows, data / f"{split}.jsonl")
    raw, calibrated = (
        spanwise.load(with_scale(trained, tmp_path / name, scale), "cpu") for name, scale in (("raw", None), ("new", SCALE))
    )
    one, other = find_threshold(raw, data), find_threshold(calibrated, data)
    assert one.calibration.best is not None
    assert other.calibration.best is not None
    assert one.calibration.best.score == other.calibration.best.score
    assert one.default is not None
    assert other.default is not None
    assert one.default.score == other.default.score
    RunFolder(tmp_path / "raw").save_thresholds(one.thresholds(raw.types))
    RunFolder(tmp_path / "new").save_thresholds(other.thresholds(calibrated.types))
    predictions = [scores(spanwise.load(tmp_path / name, "cpu").predict(DATA["test"])) for name in ("raw", "new")]
    assert predictions[0].keys() == predictions[1].keys()
    evaluation = score_model(calibrated, data).to_json()
    for name, predictor in (("before", raw), ("after", calibrated)):
        expected = calibration(DATA["test"], predictor.predict(DATA["test"])).expected_error
        assert evaluation["calibration"][name] == pytest.approx(expected, abs=1e-4)
    assert evaluation["micro"] == score_model(raw, data).to_json()["micro"]
    assert "calibration" not in score_model(raw, data).to_json()


def test_relations_keep_their_scores(tmp_path: Path) -> None:
    data = with_relations(DATA)
    tiny.fit(tmp_path / "run", data, ("head.threshold=0.05",), recipe="span-relations", epochs=6)
    raw, calibrated = (
        spanwise.load(with_scale(tmp_path / "run", tmp_path / name, scale), "cpu")
        for name, scale in (("raw", None), ("new", SCALE))
    )
    before, after = raw.predict(data["test"]), calibrated.predict(data["test"])
    assert [s.relations for s in before] == [s.relations for s in after]
    assert any(s.relations for s in before)
    limit = 0.6
    for sentence, expected in zip(calibrated.predict(data["test"], threshold=limit), after, strict=True):
        filtered = next(iter(apply_threshold([expected], limit)))
        assert replace(sentence, extra=None) == replace(filtered, extra=None)


def test_services_and_searches_never_ask_for_almost_all_spans(trained: Path, tmp_path: Path) -> None:
    """The lowest threshold is 0.02 before calibration, or 0.02 after it if that is higher."""
    for name, scale in (("high", ScoreScale(3.0)), ("low", ScoreScale(0.5))):
        predictor = spanwise.load(with_scale(trained, tmp_path / name, scale), "cpu")
        assert predictor.min_threshold == max(0.02, scale.calibrate(0.02))
        assert scale.lower_bound(predictor.min_threshold) >= 0.02 - 1e-5
        assert Query(("text",), {"Drug": 0.001, "Place": 0.0}).bounded_threshold(predictor).entities == {
            "Drug": predictor.min_threshold
        }
