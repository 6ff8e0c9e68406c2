"""``spanwise label-studio config`` and ``spanwise serve --label-studio``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import uvicorn
from cli_runner import Runner
from fake_service import FakePredictor

from spanwise.label_studio.configuration import parse_configuration
from spanwise.serve import server

DATA = '{"tokens": ["In", "Oslo"], "entities": [{"type": "Place", "spans": [[1, 2]]}]}\n'


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The options of the application of a service that stops at once."""
    options: dict[str, Any] = {}
    make_app = server.make_app

    def record(predictor: Any, **given: Any) -> Any:
        options.update(given)
        return make_app(predictor, **given)

    monkeypatch.setattr(server, "load", lambda source, device: FakePredictor())
    monkeypatch.setattr(server, "make_app", record)
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    return options


def test_the_configuration_of_data_and_of_a_model(run: Runner, tmp_path: Path, model: Path) -> None:
    data = tmp_path / "train.jsonl"
    data.write_text(DATA)
    result = run("label-studio", "config", data)
    assert (result.code, result.err) == (0, "")
    assert parse_configuration(result.out).types == ("Place",)
    target = tmp_path / "labels.xml"
    assert run("label-studio", "config", model, "--output", target).out == f"wrote {target}\n"
    assert parse_configuration(target.read_text()).types == ("Drug", "Place")
    assert run("label-studio", "config", data, "--output", data).err.endswith("choose another output\n")
    assert data.read_text() == DATA
    assert "labelling configuration" in run("label-studio").out
    missing = run("label-studio", "config", tmp_path / "missing")
    assert (missing.code, missing.err) == (2, f"{tmp_path / 'missing'}: no such file or folder\n")


def test_limits_are_higher_for_label_studio(run: Runner, served: dict[str, Any]) -> None:
    assert run("serve", "MODEL", "--port", "0").code == 0
    assert (served["limits"].max_texts, served["limits"].timeout, served["extension"]) == (1000, 30, None)
    assert run("serve", "MODEL", "--port", "0", "--label-studio", "--max-texts", "7").code == 0
    assert (served["limits"].max_texts, served["limits"].timeout) == (7, 100)
    assert served["extension"].learner is None


def test_learning_is_resumed(run: Runner, served: dict[str, Any], model: Path, tmp_path: Path) -> None:
    data = tmp_path / "base.jsonl"
    data.write_text(DATA)
    command = ("serve", model, "--port", "0", "--label-studio", "--learn", "--learn-data", data, "--learn-after", "5")
    result = run(*command)
    assert (result.code, result.err) == (0, "")
    folder = model.with_name("run-label-studio")
    assert result.out.startswith(f"collecting annotations in {folder}: 0 so far\n")
    assert served["title"] == "run"
    assert served["extension"].learner.options.after == 5
    (folder / "annotations.jsonl").write_text('{"project": 1, "annotation": 5, "task": 2, "text": "Oslo"}\n')
    assert run(*command).out.startswith(f"collecting annotations in {folder}: 1 so far\n")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--learn"], "--learn collects annotations of Label Studio; pass --label-studio as well"),
        (["--label-studio", "--learn-after", "5"], "--learn-after, --learn-data and --learn-folder need --learn"),
        (["--label-studio", "--learn", "--learn-data", "missing"], "missing: no such file or folder"),
    ],
)
def test_wrong_options(run: Runner, served: dict[str, Any], model: Path, options: list[str], error: str) -> None:
    result = run("serve", model, "--port", "0", *options)
    assert (result.code, result.err) == (2, f"{error}\n")
    assert not served


def test_models_that_cannot_be_trained(run: Runner, served: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "onnx.json").write_text("{}")
    result = run("serve", tmp_path, "--port", "0", "--label-studio", "--learn")
    assert result.code == 2
    assert result.err == f"{tmp_path}: --learn needs a run folder; exported ONNX models cannot be trained\n"


def test_models_without_a_run_folder_of_the_user(
    run: Runner, served: dict[str, Any], model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("spanwise.label_studio.serving.model_folder", lambda source: model)
    for name in ("hf:owner/model", "installed-model"):
        result = run("serve", name, "--port", "0", "--label-studio", "--learn")
        problem = "not a run folder, next to which annotations can be collected; pass --learn-folder"
        assert (result.code, result.err) == (2, f"{name}: {problem}\n")
        folder = tmp_path / name.replace(":", "-").replace("/", "-")
        assert run("serve", name, "--port", "0", "--label-studio", "--learn", "--learn-folder", folder).code == 0
