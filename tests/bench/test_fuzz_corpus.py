"""The inputs that fuzzing found, replayed: each is read or refused with a ``SpanwiseError``."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import tiny
from cases import limit_cpu
from samples import BRAT_TEXT, NEEDS, put

from spanwise import SpanwiseError, read
from spanwise.formats import formats
from spanwise.prediction.load import load

CRASHES = Path(__file__).resolve().parents[2] / "bench" / "fuzz" / "crashes"
RUN_FOLDERS = CRASHES / "run-folders"
INPUTS = sorted(path for path in CRASHES.glob("*/*") if path.is_file())
CASES = sorted(path for path in RUN_FOLDERS.glob("*/*") if path.is_dir())


@pytest.mark.parametrize("crash", INPUTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_saved_inputs_are_read_or_refused(crash: Path, tmp_path: Path) -> None:
    name, data = crash.parent.name, crash.read_bytes()
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    text, _, annotations = data.partition(b"\0") if name == "brat" else (BRAT_TEXT.encode(), b"", data)
    path = put(name, tmp_path, annotations)
    if name == "brat":
        path.with_suffix(".txt").write_bytes(text)
    for format in (name, None):
        with limit_cpu(10, str(crash)):
            try:
                assert all(sentence.words is not None for sentence in read(path, format))
            except SpanwiseError as error:
                assert str(error)  # noqa: PT017


@pytest.fixture(scope="module")
def models(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models to which the files of a case are added, by the name of the case's folder."""
    root = tmp_path_factory.mktemp("fuzz")
    built = {"bert": tiny.model(tiny_bert, "seqner-crf"), "static": tiny.model("static", "seqner")}
    for name, model in built.items():
        model.save(root / name)
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from spanwise.export.onnx import write

    for name, model in built.items():
        (root / f"onnx-{name}").mkdir()
        write(model, root / f"onnx-{name}")
    return {path.name: path for path in root.iterdir()}


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_saved_run_folders_are_loaded_or_refused(case: Path, models: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(models[case.parent.name], folder)
    shutil.copytree(case, folder, dirs_exist_ok=True)
    with limit_cpu(10, str(case)):
        try:
            assert load(folder, "cpu").predict("Ana flew from Oslo to New York with aspirin.")
        except SpanwiseError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_the_corpus_is_small_and_of_known_formats() -> None:
    assert INPUTS
    assert CASES
    assert {path.parent.name for path in INPUTS} <= set(formats())
    assert all(path.stat().st_size < 100_000 for path in CRASHES.rglob("*") if path.is_file())
