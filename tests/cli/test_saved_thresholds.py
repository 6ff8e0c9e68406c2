"""Thresholds that ``evaluate --find-threshold --save`` stores in a model."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import tiny
from cli_runner import Runner
from tiny import corpus

import spanwise
from spanwise import SpanwiseError
from spanwise.decoding.thresholds import apply_threshold
from spanwise.export.onnx import export_onnx
from spanwise.files.locks import try_lock
from spanwise.formats import write
from spanwise.runs.folder import RunFolder

DATA = corpus(60, 20, 20)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for split, sentences in DATA.splits.items():
        write(sentences, folder / f"{split}.jsonl")
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A briefly trained model, for which the best threshold is not the default."""
    out = tmp_path_factory.mktemp("trained") / "run"
    tiny.fit(out, DATA, ("head.size=8", "head.dropout=0.0"), recipe="global-pointer", epochs=6, head_rate=0.02)
    return out


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "model"))


def saved_thresholds(model: Path) -> dict[str, float]:
    return dict(spanwise.load(model, "cpu").thresholds)


def best(run: Runner, model: Path, data: Path, *options: str) -> dict[str, float]:
    result = run("evaluate", model, data, "--find-threshold", "--save", *options, "--device", "cpu")
    assert result.code == 0, result.err
    assert f"saved in {model}: " in result.out
    return saved_thresholds(model)


def test_saved_thresholds_are_described(run: Runner, model: Path, tmp_path: Path) -> None:
    export_onnx(model, tmp_path / "onnx")
    for folder in (model, tmp_path / "onnx"):
        assert "thresholds" not in run("describe", folder).out
        RunFolder(folder).save_thresholds({"Drug": 0.3, "Place": 0.62})
        assert "\nthresholds    Drug 0.3, Place 0.62\n" in run("describe", folder).out


def test_thresholds_found_on_dev_are_saved_and_used_by_default(run: Runner, model: Path, data: Path) -> None:
    before = spanwise.load(model, "cpu")
    unchanged = before.predict(DATA["test"])
    saved = best(run, model, data)
    assert saved.keys() == {"Drug", "Place"}
    assert len(set(saved.values())) == 1
    after = spanwise.load(model, "cpu")
    expected = [s.entities for s in before.predict(DATA["test"], threshold=saved)]
    assert [s.entities for s in after.predict(DATA["test"])] == expected
    assert expected != [s.entities for s in unchanged]
    # A given threshold replaces the saved ones, and a threshold of one type only that of this type.
    assert after.predict(DATA["test"], threshold=0.5) == list(apply_threshold(unchanged, 0.5))
    assert after.predict(DATA["test"], threshold={"Drug": 0.9}) == before.predict(
        DATA["test"], threshold={**saved, "Drug": 0.9}
    )


def test_thresholds_can_be_saved_per_type(run: Runner, model: Path, data: Path) -> None:
    result = run("evaluate", model, data, "--find-threshold", "--per-type", "--save", "--device", "cpu", "--json", "-")
    saved = saved_thresholds(model)
    types = json.loads(result.out[result.out.index("{") :])["threshold"]["types"]
    assert saved == {type: point["threshold"] for type, point in types.items()}
    assert len(set(saved.values())) == 2
    scored = run("evaluate", model, data, "--device", "cpu", "--json", "-")
    assert json.loads(scored.out)["micro"] == json.loads(result.out[result.out.index("{") :])["micro"]


def test_saved_thresholds_survive_an_export_and_can_be_saved_in_an_onnx_folder(run: Runner, model: Path, data: Path) -> None:
    saved = best(run, model, data)
    run("export", model, "--out", model.parent / "torch")
    export_onnx(model, model.parent / "onnx", data=data)
    for folder in (model.parent / "torch", model.parent / "onnx"):
        assert saved_thresholds(folder) == saved
        assert spanwise.load(folder, "cpu").predict(DATA["test"]) == spanwise.load(model, "cpu").predict(DATA["test"])
    by_type = best(run, model.parent / "onnx", data, "--per-type")
    assert saved_thresholds(model.parent / "onnx") == by_type


def test_thresholds_are_not_saved_where_they_would_be_lost(run: Runner, model: Path, data: Path) -> None:
    pred = data / "dev.jsonl"
    for words, message in (
        (("--save",), "--save needs --find-threshold"),
        (("--per-type",), "--per-type needs --find-threshold"),
    ):  # fmt: skip
        result = run("evaluate", model, data, *words)
        assert (result.code, message in result.err) == (2, True), result.err
    result = run("evaluate", "--pred", pred, "--gold", pred, "--find-threshold", "--save")
    assert (result.code, "--save needs MODEL and DATA" in result.err) == (2, True), result.err
    run_folder = RunFolder(model)
    run_folder.report_file.rename(model / "moved")
    run_folder.record_file.write_text("{}")
    with pytest.raises(SpanwiseError, match="training is unfinished"):
        run_folder.save_thresholds({"Drug": 0.3})
    (model / "moved").rename(run_folder.report_file)
    with pytest.raises(SpanwiseError, match="no trained model here"):
        RunFolder(data).save_thresholds({"Drug": 0.3})


def test_thresholds_are_saved_by_the_only_writer_of_the_folder(run: Runner, model: Path, data: Path) -> None:
    before = RunFolder(model).config_file.read_bytes()
    lock = try_lock(model)
    assert lock is not None
    result = run("evaluate", model, data, "--find-threshold", "--save", "--device", "cpu")
    lock.release()
    assert (result.code, result.err.count("\n")) == (2, 1), result.err
    assert f"process {os.getpid()} is training in this folder" in result.err
    assert RunFolder(model).config_file.read_bytes() == before
    RunFolder(model).save_thresholds({"Drug": 0.3})
    assert not RunFolder(model).lock_file.exists()


def test_evaluate_takes_thresholds_by_type_as_predict_does(run: Runner, trained: Path, data: Path, tmp_path: Path) -> None:
    options = ("--threshold", "Drug=0.7", "--threshold", "Place=0.2", "--device", "cpu")
    scored = run("evaluate", trained, data / "test.jsonl", *options, "--json", "-")
    assert scored.code == 0, scored.err
    out = tmp_path / "out.jsonl"
    run("predict", trained, data / "test.jsonl", *options, "--output", out)
    again = run("evaluate", "--pred", out, "--gold", data / "test.jsonl", "--json", "-")
    assert json.loads(scored.out)["micro"] == json.loads(again.out)["micro"]
    filtered = run("evaluate", "--pred", out, "--gold", data / "test.jsonl", "--threshold", "Drug=1", "--json", "-")
    assert json.loads(filtered.out)["types"]["Drug"]["predicted"] == 0
    for words in ((trained, data / "test.jsonl"), ("--pred", out, "--gold", data / "test.jsonl")):
        wrong = run("evaluate", *words, "--threshold", "Drugs=0.5")
        assert wrong.code == 2
        assert wrong.err.startswith("unknown type with a threshold 'Drugs' (did you mean 'Drug'?)")
    assert run("evaluate", trained, data, "--threshold", "x").err.startswith("threshold 'x': expected a number from 0 to 1")
