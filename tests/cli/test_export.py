"""``spanwise export``, and ``spanwise describe`` of models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_runner import Runner
from safetensors.torch import load_file
from tiny import corpus, fit, model, sentences

import spanwise
from spanwise.config.settings import CalibrationSettings
from spanwise.data import FOLDER
from spanwise.export.onnx import export_onnx
from spanwise.models.model import Model
from spanwise.prediction.describe import describe_model
from spanwise.runs.folder import RunFolder

RECIPES = {
    "bl-seqner": ("seqner", ["head.sequence.tagging=crf", "head.span.kind=efficient-global-pointer"]),
    "bl-spanner": ("biaffine", ["head.span.kind=biaffine", "head.span.max_width=5"]),
    "global-pointer": ("global-pointer", []),
}


def predictions(folder: Path) -> list[Any]:
    predicted = spanwise.load(folder, "cpu").predict([*sentences(30, seed=4), "Nothing but oslo, the new york acid."])
    return [[(entity, entity.score) for entity in sentence.entities] for sentence in predicted]


@pytest.fixture
def bundle(tiny_bert: Path, tmp_path: Path) -> Path:
    model(tiny_bert, "bl-spanner").save(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("recipe", RECIPES)
def test_exported_model_predicts_the_same(tiny_bert: Path, tmp_path: Path, run: Runner, recipe: str) -> None:
    kind, overrides = RECIPES[recipe]
    built = model(tiny_bert, recipe, overrides)
    built.save(tmp_path / "run")
    (tmp_path / "run" / "checkpoints").mkdir()
    done = run("export", tmp_path / "run", "--out", tmp_path / "model")
    assert done.code == 0
    assert done.out.startswith(f"wrote {tmp_path / 'model'}: {kind}, ")
    assert predictions(tmp_path / "model") == predictions(tmp_path / "run")
    assert any(predictions(tmp_path / "model"))
    config = yaml.safe_load((tmp_path / "model" / "config.yaml").read_text())
    assert config["recipe"] == recipe
    assert config["head"]["kind"] == kind
    assert not any(isinstance(value, dict) for value in config["head"].values())
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("run", "model"))
    head = len(built.head.prediction_head.state_dict())
    assert len(after) == len(built.encoder.state_dict()) + head
    assert len(before) - len(after) == len(built.head.state_dict()) - head
    names = {path.name for path in (tmp_path / "model").rglob("*")}
    assert names == {path.name for path in (tmp_path / "run").rglob("*")} - {"checkpoints"}
    run("export", tmp_path / "model", "--out", tmp_path / "again")  # a second export changes nothing
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert all((tmp_path / "again" / path.relative_to(tmp_path / "model")).read_bytes() == path.read_bytes() for path in files)


def test_only_the_model_is_exported(tmp_path: Path, run: Runner) -> None:
    fit(tmp_path / "run", corpus(), recipe="bl-seqner", epochs=1)
    (tmp_path / "model").mkdir()  # an empty folder is allowed
    assert run("export", tmp_path / "run", "--out", tmp_path / "model").code == 0
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "config.yaml", "labels.json", "model.safetensors", "provenance.json", "static_encoder.json",
    ]  # fmt: skip
    assert predictions(tmp_path / "model") == predictions(tmp_path / "run")


def test_export_errors(bundle: Path, tmp_path: Path, run: Runner) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    cases = [
        (bundle, tmp_path / "full", f"{tmp_path / 'full'}: the folder is not empty; choose another folder\n"),
        (bundle, bundle, f"{bundle}: the output would overwrite a run folder; choose another output\n"),
        (bundle, tmp_path / "file", f"{tmp_path / 'file'}: expected a folder, found a file\n"),
        (bundle, tmp_path / "no" / "such", f"{tmp_path / 'no'}: no such folder; create it first\n"),
        (tmp_path / "full", tmp_path / "new", f"{tmp_path / 'full'}: no trained model here (config.yaml, labels.json, "
         "model.safetensors missing)\n"),
    ]  # fmt: skip
    for model_folder, out, line in cases:
        rejected = run("export", model_folder, "--out", out)
        assert (rejected.code, rejected.out, rejected.err) == (2, "", line)
    assert sorted(tmp_path.rglob("*")) == before


def test_failed_export_leaves_no_files(bundle: Path, tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Model, folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Model, "save_weights", fail)
    failed = run("export", bundle, "--out", tmp_path / "model")
    assert (failed.code, failed.err) == (
        2,
        f"{tmp_path / 'model'}: not written: No space left on device; free some space and try again\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


# --- spanwise describe MODEL ------------------------------------------------------------------------------------------

V, D, C = 32, 64, 2  # width of the tiny encoder, vector size of the paper, types of the tiny corpus
COSTS = {
    "global-pointer": ((V + 1) * 2 * D * C, (V + 1) * 2 * D),  # 2 v d for each type, and the bias
    "efficient-global-pointer": ((V + 1) * 2 * D + (2 * D + 1) * 2 * C, 4 * D + 2),  # 4 d, and two biases
    "seqner": ((V + 1) * (2 * C + 1), 2 * (V + 1)),
}


@pytest.mark.parametrize("recipe", COSTS)
def test_parameters_per_type(tiny_bert: Path, recipe: str) -> None:
    description = describe_model(model(tiny_bert, recipe))
    head, more = COSTS[recipe]
    assert description.parameters["head"] == head
    assert description.parameters_per_type == more


def test_describe_a_model(bundle: Path, tmp_path: Path, run: Runner) -> None:
    done = run("describe", bundle, "--json", tmp_path / "model.json")
    assert (done.code, done.err) == (0, "")
    record = json.loads((tmp_path / "model.json").read_text())
    built = Model.load(bundle)
    counts = {name: sum(p.numel() for p in part.parameters()) for name, part in built.head.branches.items()}
    assert record["recipe"] == "bl-spanner"
    assert record["labels"] == {"entities": ["Drug", "Place"], "relations": []}
    assert record["head"] == built.config.head
    assert record["parameters"] == {
        "encoder": sum(p.numel() for p in built.encoder.parameters()), "head": sum(counts.values()),
        "head.sequence": counts["sequence"], "head.span": counts["span"],
    }  # fmt: skip
    assert record["parameters_per_type"] == 2 * 33 + (4 * 32 + 25 + 1)  # two tags, one class of spans
    lines = done.out.splitlines()
    assert lines[0] == "recipe        bl-spanner"
    assert "entities      2: Drug, Place" in lines
    assert any(line.startswith("head.span     kind=spanner, max_width=2, ") for line in lines)
    assert lines[-1] == "entity type   220 parameters each"
    counts = record["parameters"]
    assert f"parameters    encoder {counts['encoder']:,}, head {counts['head']:,}, head.sequence 165, " in lines[-2]
    assert json.loads(run("describe", bundle, "--json", "-").out) == record


def test_a_run_is_described_with_its_data_scores_and_calibrated_threshold(tiny_bert: Path, tmp_path: Path, run: Runner) -> None:
    fit(tmp_path / "run", recipe="global-pointer", encoder=str(tiny_bert), epochs=1)
    folder = RunFolder(tmp_path / "run")
    folder.write_config(
        folder.read_config().model_copy(update={"calibration": CalibrationSettings(temperature=2.0, bias=-0.5)})
    )
    export_onnx(folder.path, tmp_path / "onnx")
    rows = run("describe", folder.path).out.splitlines()
    assert "threshold     0.377541 by default (--threshold), of calibrated scores" in rows
    assert "threshold     0.377541 by default (--threshold), of calibrated scores" in run("describe", tmp_path / "onnx").out
    report = folder.read_report()
    counts = {split: values["sentences"] for split, values in report["data"].items()}
    assert f"sentences     {', '.join(f'{split} {count}' for split, count in counts.items())}" in rows
    assert [row.split()[0] for row in rows if " scores  " in row] == ["dev", "test"]
    record = json.loads(run("describe", folder.path, "--json", "-").out)
    assert (record["scores"], record["data"]) == (report["scores"], counts)
    assert record["threshold"] == spanwise.load(folder.path, "cpu").default_threshold
    assert "sentences" not in run("describe", tmp_path / "onnx").out


def test_folder_of_runs_suggests_its_first(bundle: Path, tmp_path: Path, run: Runner) -> None:
    runs = tmp_path / "runs"
    for seed in (10, 2):
        shutil.copytree(bundle, runs / f"seed-{seed}")
    (tmp_path / "text.txt").write_text("oslo")
    test = FOLDER / "test.jsonl"
    message = f"{runs}: is a folder of several runs; pass one of them, such as {runs / 'seed-2'}\n"
    for command in (
        ("describe", runs), ("export", runs, "--out", tmp_path / "new"), ("predict", runs, tmp_path / "text.txt"),
        ("evaluate", runs, test), ("analyze", runs, test, "--out", tmp_path / "out"), ("serve", runs, "--port", 0),
        ("export", runs, "--onnx", "--out", tmp_path / "new"),
    ):  # fmt: skip
        result = run(*command)
        assert (result.code, result.out, result.err) == (2, "", message), command
    shutil.copy(test, runs / "test.jsonl")  # a corpus folder that also contains runs
    assert run("describe", runs).code == 0


def test_describe_an_incomplete_model(bundle: Path, run: Runner) -> None:
    (bundle / "model.safetensors").unlink()
    done = run("describe", bundle)
    assert (done.code, done.out, done.err) == (2, "", f"{bundle}: no trained model here (model.safetensors missing)\n")
