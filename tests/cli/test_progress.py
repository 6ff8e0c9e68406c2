"""Progress and summaries of commands, and inputs that are checked before a model is loaded."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
from cli_runner import Runner
from tiny import STATIC, sentences

import spanwise.prediction.load
from spanwise.cli.training_report import print_next_commands
from spanwise.formats import write
from spanwise.training.progress import Progress

SUMMARY = r"4 sentences, \d+ entities, \d+\.\d s\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for split in ("train", "dev"):
        write(sentences(4), folder / f"{split}.jsonl")
    return folder


def test_predict_ends_with_a_summary(run: Runner, model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    written = run("predict", model, data / "dev.jsonl", "--output", out)
    assert re.fullmatch(f"wrote {re.escape(str(out))}: {SUMMARY}", written.out)
    printed = run("predict", model, data / "dev.jsonl")
    assert re.fullmatch(f"predicted {SUMMARY}", printed.err)
    rows = [json.loads(line) for line in printed.out.splitlines()]
    entities = sum(len(row["entities"]) for row in rows)
    assert f"4 sentences, {entities:,} entities, " in printed.err


@pytest.mark.parametrize("command", ["predict", "suggest"])
def test_predictions_show_progress_on_a_terminal(
    run: Runner, model: Path, data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    result = run(command, model, data / "dev.jsonl", "--output", tmp_path / "out.jsonl")
    assert result.code == 0
    assert "sentences/s" in terminal.getvalue()
    assert "sentences/s" not in result.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("evaluate", "MODEL", "missing"), "missing: no such file or folder"),
        (("evaluate", "MODEL", "data", "--split", "test"), "data: no test split; found train, dev"),
        (("evaluate", "MODEL", "letter"), "letter: cannot detect the format"),
        (("evaluate", "MODEL", "data", "--split", "dev", "--train", "missing"), "missing: no such file or folder"),
        (("evaluate", "MODEL", "test.jsonl", "--find-threshold"), "test.jsonl: --find-threshold needs a dev split"),
        (("predict", "MODEL", "letter"), "letter: cannot detect the format"),
        (("predict", "MODEL", "data/dev.jsonl", "letter"), "letter: cannot detect the format"),
        (("analyze", "MODEL", "data", "--out", "report"), "data: no test split; found train, dev"),
        (("analyze", "MODEL", "letter", "--out", "report"), "letter: cannot detect the format"),
        (("compare", "a=MODEL", "b=letter", "--gold", "data/dev.jsonl"), "letter: cannot detect the format"),
        (("export", "MODEL", "--onnx", "--out", "onnx", "--data", "missing"), "missing: no such file or folder"),
    ],
)  # fmt: skip
def test_missing_files_splits_and_formats_are_reported_before_a_model_is_loaded(
    run: Runner, model: Path, data: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.chdir(data.parent)
    Path("letter").write_text("Dear all,\nno format.\n")
    write(sentences(4), Path("test.jsonl"))
    monkeypatch.setattr(spanwise.prediction.load, "load", fail)
    monkeypatch.setattr(spanwise.prediction.load, "load_torch", fail)
    monkeypatch.setattr("spanwise.models.model.Model.load", fail)
    result = run(*(word.replace("MODEL", str(model)) for word in words))
    assert result.code == 2
    assert result.err.startswith(message)


def test_train_ends_with_the_commands_to_try_next(run: Runner, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "my run"
    settings = [word for setting in STATIC for word in ("--set", setting)]
    result = run("train", data, "--out", out, "--encoder", "static", "--epochs", "1", "--device", "cpu", *settings)
    assert result.code == 0
    ending = result.out[result.out.index("run folder: ") :].splitlines()
    assert ending[1:] == [
        f"next: spanwise predict '{out}' FILE.txt  # entities in new texts",
        f"      spanwise evaluate '{out}' {data} --split dev --find-threshold --save  # a better threshold",
        f"      spanwise analyze '{out}' {data} --split dev --out report  # which errors it makes, and why",
        f"      spanwise serve '{out}'  # try it in a browser",
    ]


def test_no_evaluation_is_proposed_without_gold_entities(capsys: pytest.CaptureFixture[str]) -> None:
    """Training on a single sentence leaves no dev sentence, and a corpus may have no entity in test."""
    some, none = ({"micro": {"support": support}} for support in (3, 0))
    for scores in ({"dev": none}, {"dev": some, "test": none}):
        print_next_commands(Path("RUN"), Path("DATA"), None, scores)
        assert re.findall("spanwise (.*?) ", capsys.readouterr().out) == ["predict", "serve"]


def test_a_score_of_zero_is_not_marked_as_best() -> None:
    lines: list[str] = []
    progress = Progress(10, 0, lines.append)
    row = {"epoch": 1, "loss": 1.0, "seconds": 1.0}
    progress.epoch(row, "F1 0.00", 0.0, is_best=True)
    progress.epoch(row, "F1 50.00", 0.5, is_best=True)
    progress.epoch(row, "F1 40.00", 0.4, is_best=False)
    assert [line.count("(best)") for line in lines] == [0, 1, 0]
