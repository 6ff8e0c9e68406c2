"""Models as wheels: their files and metadata, and finding them by name after installation."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import tiny
from packaging.metadata import Metadata

import spanwise
from spanwise import SpanwiseError
from spanwise.core.version import __version__
from spanwise.integrations.package import _choose_format, package
from spanwise.prediction.onnx.record import read_record

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; run pip install 'spanwise[onnx]'")
pytest.importorskip("onnx", reason="onnx is not installed; run pip install 'spanwise[onnx]'")
TEXT = "oslo was quiet.\n"


@pytest.fixture(scope="module")
def exported(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from spanwise.export.onnx import export_onnx

    folder = tmp_path_factory.mktemp("exported") / "model"
    export_onnx(model, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheels") / "dist"
    return package(exported, out, name="EN_Tiny", version="0.1.0-rc.1", licence="cc-by-4.0", corpus="Tiny Town").path


@pytest.fixture
def site(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages with the wheel, unpacked as pip does it; the working folder is empty."""
    folder = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    monkeypatch.syspath_prepend(str(folder))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "spanwise_models"]:
        del sys.modules[name]


def predictions(source: Any) -> list[Any]:
    predicted = spanwise.load(source, "cpu").predict([*tiny.sentences(20, seed=4), TEXT])
    return [[(entity, entity.score) for entity in sentence.entities] for sentence in predicted]


def test_the_wheel_is_valid_and_complete(wheel: Path, exported: Path) -> None:
    assert wheel.name == "en_tiny-0.1.0rc1-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    info, inside = "en_tiny-0.1.0rc1.dist-info", "spanwise_models/en_tiny"
    rows = {name: row for name, *row in csv.reader(contents[f"{info}/RECORD"].decode().splitlines())}
    assert rows.pop(f"{info}/RECORD") == ["", ""]
    assert rows.keys() == contents.keys() - {f"{info}/RECORD"}
    for name, (digest, size) in rows.items():
        expected = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest()).decode().rstrip("=")
        assert (digest, size) == (f"sha256={expected}", str(len(contents[name]))), name
    for file in (path for path in exported.rglob("*") if path.is_file()):
        assert contents[f"{inside}/{file.relative_to(exported)}"] == file.read_bytes()
    metadata = Metadata.from_email(contents[f"{info}/METADATA"], validate=True)
    assert (metadata.name, str(metadata.version), metadata.license_expression) == ("en-tiny", "0.1.0rc1", "CC-BY-4.0")
    assert [str(requirement) for requirement in metadata.requires_dist or ()] == [f"spanwise[onnx]<0.2,>={__version__}"]
    assert metadata.summary == "Named entity recognition with Spanwise: Drug, Place"
    card = contents[f"{inside}/README.md"].decode()
    assert (metadata.description or "").strip() == card.strip()
    assert 'spanwise.load("en-tiny")' in card
    assert "pip install en_tiny-0.1.0rc1-py3-none-any.whl" in card
    assert "- Data: Tiny Town" in card
    assert contents[f"{info}/entry_points.txt"].decode() == "[spanwise.models]\nen-tiny = spanwise_models.en_tiny\n"


def test_the_same_model_gives_the_same_bytes(wheel: Path, exported: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(exported, copy)
    (copy / "labels.json").touch()
    packed = package(copy, tmp_path, name="en-tiny", version="0.1.0rc1", licence="CC-BY-4.0", corpus="Tiny Town")
    assert packed.path.read_bytes() == wheel.read_bytes()


@pytest.mark.usefixtures("site")
def test_an_installed_model_is_found_by_its_name(exported: Path) -> None:
    expected = predictions(exported)
    assert any(expected)
    for name in ("en-tiny", "EN_tiny", Path("en-tiny")):
        assert predictions(name) == expected
    assert "spanwise_models.en_tiny" not in sys.modules  # no code of the package is imported


@pytest.mark.usefixtures("site")
def test_a_folder_is_preferred_to_an_installed_model(model: Path, exported: Path) -> None:
    Path("en-tiny").symlink_to(model)
    assert type(spanwise.load("en-tiny", "cpu")) is type(spanwise.load(model, "cpu"))
    assert type(spanwise.load("en-tiny", "cpu")) is not type(spanwise.load(exported, "cpu"))


def test_unknown_and_broken_names(site: Path) -> None:
    problem = "^en-tini: no such folder; no installed model has this name .did you mean 'en-tiny'.*; installed: .*en-tiny"
    with pytest.raises(SpanwiseError, match=problem):
        spanwise.load("en-tini")
    with pytest.raises(SpanwiseError, match=r"^\./en-tiny: no such folder$"):  # a path, not a name
        spanwise.load("./en-tiny")
    shutil.rmtree(site / "spanwise_models")
    with pytest.raises(SpanwiseError, match=r"^installed model 'en-tiny': the package spanwise_models.en_tiny is missing"):
        spanwise.load("en-tiny")


def test_prediction_from_the_command_line_without_torch(site: Path, model: Path) -> None:
    Path("one.txt").write_text(TEXT)
    program = f"""
import sys
sys.path.insert(0, {str(site)!r})
sys.modules.update(torch=None, transformers=None, safetensors=None, accelerate=None)
from spanwise.cli import main
for arguments in (["predict", "en-tiny", "one.txt"], ["predict", {str(model)!r}, "one.txt"], ["demo"]):
    try:
        main(arguments)
    except SystemExit as exited:
        print(exited.code)
import spanwise
try:
    spanwise.train
except spanwise.SpanwiseError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    first, *codes, error = done.stdout.splitlines()
    assert json.loads(first)["tokens"] == ["oslo", "was", "quiet", "."]
    assert codes == ["0", "2", "2"]
    advice = "run pip install 'spanwise[torch]'"
    assert done.stderr.splitlines()[1:] == [f"{model}: this model needs torch; {advice}", f"this command needs torch; {advice}"]
    assert error == f"spanwise.train needs torch; {advice}"


def test_formats(model: Path, exported: Path, tiny_bert: Path, tmp_path: Path) -> None:
    tiny.model(tiny_bert, "global-pointer").save(tmp_path / "bert")
    assert [_choose_format(folder, None) for folder in (model, tmp_path / "bert", exported)] == ["onnx", "int8", "onnx"]
    packed = package(tmp_path / "bert", tmp_path, name="int8", version="1")
    assert packed.export is not None
    assert packed.export.precision == "int8"
    with zipfile.ZipFile(packed.path) as archive:
        archive.extractall(tmp_path)
    assert read_record(tmp_path / "spanwise_models" / "int8").precision == "int8"
    torch_wheel = package(model, tmp_path, name="torch-model", version="1", format="torch")
    with zipfile.ZipFile(torch_wheel.path) as archive:
        assert "spanwise_models/torch_model/model.safetensors" in archive.namelist()
        assert b"Requires-Dist: spanwise[torch]" in archive.read("torch_model-1.dist-info/METADATA")


def test_errors_write_nothing(model: Path, exported: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    cases: list[tuple[dict[str, Any], str]] = [
        ({"name": "a--"}, "name 'a--': expected a package name of letters"),
        ({"name": "../up"}, "name '../up': expected a package name"),
        ({"name": "Spanwise"}, "name 'Spanwise': a package of this name would replace the library"),
        ({"version": "one"}, "version 'one': expected numbers with dots"),
        ({"licence": "free"}, "licence 'free': expected an SPDX expression"),
        ({"format": "tflite"}, "format 'tflite': expected int8, onnx or torch"),
        ({"format": "int8"}, "is exported to ONNX in float32; pass the run folder"),
        ({"max_loss": 1.0}, "is exported already; pass the run folder to choose a quantisation"),
        ({"source": model, "dev": tmp_path}, "dev: needs the format int8; .* is packed as onnx"),
        ({"source": model, "format": "torch", "data": tmp_path}, "data: needs the format int8 or onnx; .* is packed as torch"),
        ({"source": tmp_path}, "no trained model here"),
        ({"out": tmp_path / "file"}, "file: expected a folder, found a file"),
        ({"out": tmp_path / "no" / "dist"}, "no: no such folder"),
    ]
    for changes, problem in cases:
        options = {"source": exported, "out": tmp_path / "dist", "name": "en-tiny", "version": "1", **changes}
        with pytest.raises(SpanwiseError, match=problem):
            package(options.pop("source"), options.pop("out"), **options)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_chosen_quantisation_gives_the_same_bytes(tiny_bert: Path, tmp_path: Path) -> None:
    """What depends on the machine, such as the time per sentence, is printed but not stored."""
    tiny.model(tiny_bert, "global-pointer").save(tmp_path / "run")
    spanwise.write(tiny.sentences(30, seed=4), tmp_path / "dev.jsonl")
    lines: list[str] = []
    wheels = [
        package(tmp_path / "run", tmp_path / out, name="int8", version="1", dev=tmp_path / "dev.jsonl", max_loss=100, log=log)
        for out, log in (("one", lines.append), ("other", tiny.quiet))
    ]
    assert wheels[0].export is not None
    assert wheels[0].export.quantization is not None
    assert wheels[0].export.quantization.tried
    assert "ms/sentence" in lines[1]
    assert wheels[0].path.read_bytes() == wheels[1].path.read_bytes()
