"""``spanwise analyze``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from analysed import GOLD, PREDICTED, TRAIN
from running import Runner
from tiny import corpus, fit

from spanwise.formats import write


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, sentences in (("gold", GOLD), ("pred", PREDICTED), ("train", TRAIN)):
        write(sentences, tmp_path / f"{name}.jsonl")
    return tmp_path


def numbers(out: Path) -> dict[str, dict[str, list[dict[str, object]]]]:
    parts = json.loads((out / "numbers.json").read_text(encoding="utf-8"))["parts"]
    return {name: part["tables"] for name, part in parts.items()}


def test_predictions(files: Path, run: Runner) -> None:
    pred, gold, out = files / "pred.jsonl", files / "gold.jsonl", files / "out"
    result = run("analyze", "--pred", pred, "--gold", gold, "--out", out)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"wrote {out}/report.html\n"
    assert len(list((out / "figures").glob("*.png"))) >= 5
    found = numbers(out)
    assert found["scores"]["summary"][0]["f1"] == 0.625
    assert "difference" not in found
    assert {"setting": "gold", "value": str(gold)} in found["settings"]["settings"]


def test_predictions_with_train_another_system_and_a_threshold(files: Path, run: Runner) -> None:
    pred, gold, out = files / "pred.jsonl", files / "gold.jsonl", files / "out"
    result = run(
        "analyze", "--pred", pred, "--gold", gold, "--train", files / "train.jsonl", "--against", f"best={gold}",
        "--threshold", 0.65, "--out", out,
    )  # fmt: skip
    assert (result.code, result.err) == (0, "")
    found = numbers(out)
    assert found["scores"]["summary"][0]["predicted"] == 5  # scores of 0.9, 0.8, 0.95, 0.7 and 1.0
    assert {row["attribute"] for row in found["buckets"]["equal"]} >= {"eCon", "frequency"}
    assert {row["system"] for row in found["difference"]["errors"]} == {"best"}
    assert [row for row in found["data"]["splits"] if row[""] == "sentences"] == [{"": "sentences", "train": 2, "gold": 5}]


def test_a_model(tmp_path: Path, run: Runner) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for split, sentences in corpus().splits.items():
        write(sentences, data / f"{split}.jsonl")
    fit(tmp_path / "run")
    result = run("analyze", tmp_path / "run", data, "--split", "dev", "--out", tmp_path / "out", "--device", "cpu")
    assert result.code == 0, result.err
    found = numbers(tmp_path / "out")
    assert next(iter(found)) == "scores"
    assert {"probabilities", "losses"} <= set(found), "what only a model can tell"
    settings = {row["setting"]: row["value"] for row in found["settings"]["settings"]}
    assert settings["recipe"] == "seqner"
    assert settings["split"] == "dev"
    assert settings["training.epochs"] == "4"


def test_a_model_on_a_text_that_gold_cuts_elsewhere(tmp_path: Path, run: Runner) -> None:
    """An entity across the end of a sentence keeps the text around it together, in gold alone."""
    text = "It rained. Then many came. Aspirin acid was seen near oslo."
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text(text)
    (tmp_path / "data" / "a.ann").write_text("T1\tPlace 9 15\t. Then\nT2\tPlace 54 58\toslo\n")
    fit(tmp_path / "run", recipe="spanner")
    result = run("analyze", tmp_path / "run", tmp_path / "data", "--out", tmp_path / "out", "--device", "cpu")
    assert result.code == 0, result.err
    found = numbers(tmp_path / "out")
    assert found["scores"]["summary"][0]["support"] == 2
    assert {row["entities"] for row in found["probabilities"]["by_type"]} == {2}


def test_what_is_lost_of_gold_is_said_with_the_scores(files: Path, run: Runner) -> None:
    """An entity that is not in the text of gold's file is missing in every denominator."""
    record = {"text": "Oslo was wet in May", "triple_list": [["Oslo", "when", "May"], ["Bergen", "when", "May"]]}
    (files / "gold.jsonl").write_text(json.dumps(record) + "\n")
    result = run("analyze", "--pred", files / "gold.jsonl", "--gold", files / "gold.jsonl", "--out", files / "out")
    assert result.code == 0, result.err
    parts = json.loads((files / "out" / "numbers.json").read_text(encoding="utf-8"))["parts"]
    assert "Not read from gold, and not counted: " in parts["scores"]["text"]


def test_a_model_that_types_given_spans_is_judged_by_that(tmp_path: Path, run: Runner) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for split, sentences in corpus().splits.items():
        write(sentences, data / f"{split}.jsonl")
    settings = ("encoder.glove.iterations=2", "head.hidden=8", "head.task=typing")
    fit(tmp_path / "run", recipe="sng", overrides=settings, epochs=1)
    result = run("analyze", tmp_path / "run", data, "--out", tmp_path / "out", "--device", "cpu")
    assert result.code == 0, result.err
    found = numbers(tmp_path / "out")
    assert found["scores"]["types"][0]["type"] == "all types"
    assert "accuracy" in found["scores"]["types"][0]
    assert "buckets" not in found
    refused = run("analyze", tmp_path / "run", data, "--against", f"other={data / 'test.jsonl'}", "--out", tmp_path / "more")
    assert refused.code == 2
    assert "types given spans" in refused.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give either MODEL and DATA, or --pred FILE and --gold FILE"),
        (("--pred", "pred.jsonl"), "give either MODEL and DATA, or --pred FILE and --gold FILE"),
        (("run",), "give either MODEL and DATA, or --pred FILE and --gold FILE"),
        (("run", "data", "--pred", "pred.jsonl", "--gold", "gold.jsonl"), "give either MODEL and DATA"),
        (("run", "data"), "run: no trained model here"),
        (("--pred", "none.jsonl", "--gold", "gold.jsonl"), "none.jsonl: no such file or folder"),
        (("--pred", "pred.jsonl", "--gold", "gold.jsonl", "--against", "other.jsonl"), "other.jsonl: no such file or folder"),
        (("--pred", "pred.jsonl", "--gold", "gold.jsonl", "--against", "pred.jsonl"), "both systems are called 'pred'"),
        (("--pred", "train.jsonl", "--gold", "gold.jsonl"), "no id of the predictions"),
        (("--pred", "pred.jsonl", "--gold", "gold.jsonl", "--projection", "tsnee"), "unknown projection 'tsnee'"),
    ],
)
def test_mistakes_are_told_in_one_line(
    files: Path, run: Runner, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(files)
    result = run("analyze", *arguments, "--out", "out")
    assert result.code == 2
    assert said in result.err
    assert result.err.count("\n") == 1
    assert not (files / "out").exists()


def test_a_projection_that_is_not_installed_is_refused_before_anything_is_read(
    files: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    for what in ((files / "none", files / "none"), ("--pred", files / "pred.jsonl", "--gold", files / "gold.jsonl")):
        result = run("analyze", *what, "--projection", "umap", "--out", files / "out")
        assert (result.code, result.err) == (2, "this projection needs UMAP: pip install umap-learn\n")
        assert not (files / "out").exists()


def test_a_folder_with_something_else_is_refused_before_anything_is_read(files: Path, run: Runner) -> None:
    result = run("analyze", "--pred", "none.jsonl", "--gold", "none.jsonl", "--out", files)
    assert (result.code, result.err) == (2, f"{files}: is not empty and holds no analysis; choose another folder\n")


def test_folders_around_it_are_made_or_that_is_refused_at_once(files: Path, run: Runner) -> None:
    gold = files / "gold.jsonl"
    assert run("analyze", "--pred", gold, "--gold", gold, "--out", files / "a" / "b" / "out").code == 0
    assert (files / "a" / "b" / "out" / "report.html").is_file()
    result = run("analyze", "--pred", files / "none.jsonl", "--gold", gold, "--out", gold / "out")
    assert result.code == 2
    assert "gold.jsonl/out: cannot be made" in result.err


def test_out_is_needed(run: Runner) -> None:
    result = run("analyze", "--pred", "a", "--gold", "b")
    assert result.code == 2
    assert "--out" in result.err


def test_without_matplotlib_the_extra_is_named(files: Path) -> None:
    command = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from spanwise.cli import main\n"
        "main(['analyze', '--pred', 'pred.jsonl', '--gold', 'gold.jsonl', '--out', 'out'])"
    )
    result = subprocess.run([sys.executable, "-c", command], cwd=files, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "figures need matplotlib: pip install 'spanwise[analysis]'\n"
