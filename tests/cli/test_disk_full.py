"""A full disk: one line, exit code 2, nothing damaged, and the command works after space is made.

A limit on the size of files stands for a full disk, because it needs no separate file system.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from cli_runner import Result, Runner
from tiny import STATIC, corpus, digest, fit

from spanwise.formats import write

resource = pytest.importorskip("resource", reason="this system has no limit on the size of files")

SETTINGS = tuple(word for setting in (*STATIC, "training.head_rate=0.03") for word in ("--set", setting))
TRAIN = ("--recipe", "seqner", "--encoder", "static", "--epochs", "1", "--batch-size", "8", "--device", "cpu", *SETTINGS)


@contextmanager
def disk_space(size: int) -> Iterator[None]:
    """Let no file become larger than ``size`` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for split, sentences in corpus().splits.items():
        write(sentences, folder / f"{split}.jsonl")
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    fit(folder, corpus(), epochs=1)
    return folder


def contents(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def check_refused(result: Result, out: Path) -> None:
    assert (result.code, result.err.count("\n")) == (2, 1), result.err
    assert "File too large" in result.err
    assert "free some space" in result.err
    assert str(out) in result.err


@pytest.mark.parametrize("place", ["record", "weights", "optimizer", "report"])
def test_disk_full_in_train(run: Runner, data: Path, trained: Path, tmp_path: Path, place: str) -> None:
    weights = (trained / "model.safetensors").stat().st_size
    spaces = {"record": 0, "weights": weights - 1, "optimizer": weights + 500}
    out = tmp_path / "run"
    if place == "report":
        with pytest.MonkeyPatch.context() as patch, ExitStack() as limits:
            patch.setattr("spanwise.training.run.training_report", lambda *values: limits.enter_context(disk_space(0)) or {})
            refused = run("train", data, "--out", out, *TRAIN)
    else:
        with disk_space(spaces[place]):
            refused = run("train", data, "--out", out, *TRAIN)
    check_refused(refused, out)
    assert out.exists() == (place != "record")
    assert ("--resume" in refused.err) == (place != "record")
    assert run("train", data, "--out", out, "--resume", *TRAIN).code == 0
    assert run("train", data, "--out", tmp_path / "whole", *TRAIN).code == 0
    assert digest(out) == digest(tmp_path / "whole")
    assert contents(out).keys() == contents(tmp_path / "whole").keys()


@pytest.mark.parametrize("space", [0, 2000])
def test_disk_full_in_export(run: Runner, trained: Path, tmp_path: Path, space: int) -> None:
    before = contents(trained)
    with disk_space(space):
        check_refused(run("export", trained, "--out", tmp_path / "model"), tmp_path / "model")
    assert not list(tmp_path.iterdir())
    assert contents(trained) == before
    assert run("export", trained, "--out", tmp_path / "model").code == 0


@pytest.mark.parametrize("space", [0, 100, 5000])
def test_disk_full_in_export_to_onnx(run: Runner, trained: Path, tmp_path: Path, space: int) -> None:
    pytest.importorskip("onnxruntime")
    with disk_space(space):
        refused = run("export", trained, "--out", tmp_path / "model", "--onnx")
    assert (refused.code, refused.err.count("\n")) == (2, 1), refused.err
    assert "free some space" in refused.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("space", [0, 200])
def test_disk_full_in_vectors_train(run: Runner, data: Path, tmp_path: Path, space: int) -> None:
    options = (data / "train.jsonl", "--out", tmp_path / "vectors", "--dim", "4", "--iterations", "1", "--threads", "1")
    with disk_space(space):
        refused = run("vectors", "train", *options)
    assert (refused.code, refused.err.splitlines()[-1].count("free some space")) == (2, 1), refused.err
    assert not list(tmp_path.iterdir())
    assert run("vectors", "train", *options).code == 0


@pytest.mark.parametrize("command", ["convert", "predict", "analyze"])
def test_disk_full_keeps_the_old_output(
    run: Runner, data: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("spanwise.analysis.figures.style.render", lambda figure, kind: b"<svg></svg>")  # faster
    out, test = tmp_path / "out.jsonl", data / "test.jsonl"
    arguments = {
        "convert": ("convert", test, out),
        "predict": ("predict", trained, test, "--output", out),
        "analyze": ("analyze", "--pred", test, "--gold", test, "--out", out),
    }[command]
    assert run(*arguments).code == 0
    before = contents(tmp_path)
    for space in (0, 300):
        with disk_space(space):
            check_refused(run(*arguments), out)
        assert contents(tmp_path) == before
