"""``spanwise package``, and commands with the name of an installed model."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
import tiny
from cli_runner import Runner

import spanwise
from spanwise.formats import write
from spanwise.runs import installed

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; run pip install 'spanwise[onnx]'")


def test_build_install_and_use_a_model(
    model: Path, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    site = tmp_path / "site"
    assert "en-tiny" not in run("describe").out
    done = run("package", model, "--name", "en-tiny", "--version", "0.1.0", "--data", data(tmp_path))
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("packed: spanner in ONNX, float32, ")
    assert lines[1].startswith("identical predictions: ")
    wheel = Path("dist/en_tiny-0.1.0-py3-none-any.whl")
    assert lines[-4:] == [
        f"wrote {wheel}, {wheel.stat().st_size / 1e6:.1f} MB", "To use it, run", f"    pip install {wheel}",
        "    spanwise predict en-tiny FILE.txt",
    ]  # fmt: skip
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    monkeypatch.syspath_prepend(str(site))
    try:
        use_model(run, site / "spanwise_models" / "en_tiny")
    finally:
        sys.modules.pop("spanwise_models", None)


def data(folder: Path) -> Path:
    path = folder / "data"
    path.mkdir()
    for split, sentences in tiny.corpus().splits.items():
        write(sentences, path / f"{split}.jsonl")
    return path


def use_model(run: Runner, folder: Path) -> None:
    listed = json.loads(run("describe", "--json", "-").out)
    assert {"name": "en-tiny", "version": "0.1.0", "folder": str(folder), "types": ["Drug", "Place"]} in listed
    assert f"en-tiny 0.1.0\n    Drug, Place\n    {folder}\n" in run("describe").out
    assert run("describe", "en-tiny").out.splitlines()[0] == "recipe        spanner"
    Path("one.txt").write_text("oslo was quiet.\n")
    assert json.loads(run("predict", "en-tiny", "one.txt").out)["tokens"][0] == "oslo"
    assert run("evaluate", "en-tiny", "data", "--find-threshold", "--save").code == 0
    assert spanwise.load(folder, "cpu").thresholds
    shutil.copytree(folder, "copy")
    compared = run("compare", "en-tiny", "other=copy", "--data", "data", "--json", "-")
    assert list(json.loads(compared.out)["systems"]) == ["en-tiny", "other"]
    failed = run("compare", "en-tini", "copy", "--data", "data")
    expected = "en-tini: no such file or folder; no installed model has this name (did you mean 'en-tiny'?); installed: "
    assert failed.err.startswith(expected)
    assert "en-tiny" in failed.err.removeprefix(expected)
    failed = run("predict", "en-tiny", "one.txt", "--to", "jsonl", "--output", folder / "labels.json")
    assert (failed.code, failed.err.startswith(f"{folder / 'labels.json'}: the output would overwrite")) == (2, True)


def test_without_installed_models_describe_says_how_to_get_them(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "GROUP", "spanwise.no-models")
    assert run("describe").out == "no models are installed; spanwise package builds one, pip install installs it\n"
