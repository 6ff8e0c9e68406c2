"""``spanwise analyze``."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import Runner
from sample_predictions import GOLD, PREDICTED, TRAIN
from tiny import corpus, fit, model

from spanwise.analysis.inputs import _width_notes
from spanwise.formats import write


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, sentences in (("gold", GOLD), ("pred", PREDICTED), ("train", TRAIN)):
        write(sentences, tmp_path / f"{name}.jsonl")
    return tmp_path


def numbers(out: Path) -> dict[str, dict[str, list[dict[str, object]]]]:
    sections = json.loads((out / "numbers.json").read_text(encoding="utf-8"))["sections"]
    return {name: section["tables"] for name, section in sections.items()}


def test_predictions(files: Path, run: Runner) -> None:
    pred, gold, out = files / "pred.jsonl", files / "gold.jsonl", files / "out"
    result = run("analyze", "--pred", pred, "--gold", gold, "--out", out)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"wrote {out}/report.html\n"
    assert len(list((out / "figures").glob("*.png"))) >= 5
    tables = numbers(out)
    assert tables["scores"]["summary"][0]["f1"] == 0.625
    assert "difference" not in tables
    assert {"setting": "gold", "value": str(gold)} in tables["settings"]["settings"]


@pytest.mark.usefixtures("without_figures")
def test_predictions_with_options(files: Path, run: Runner) -> None:
    pred, gold, out = files / "pred.jsonl", files / "gold.jsonl", files / "out"
    result = run(
        "analyze", "--pred", pred, "--gold", gold, "--train", files / "train.jsonl", "--against", f"best={gold}",
        "--threshold", 0.65, "--out", out,
    )  # fmt: skip
    assert (result.code, result.err) == (0, "")
    tables = numbers(out)
    assert tables["scores"]["summary"][0]["predicted"] == 5  # scores of 0.9, 0.8, 0.95, 0.7 and 1.0
    assert {row["attribute"] for row in tables["buckets"]["equal"]} >= {"eCon", "frequency"}
    assert {row["system"] for row in tables["difference"]["errors"]} == {"best"}
    assert [row for row in tables["data"]["splits"] if row["count"] == "sentences"] == [
        {"count": "sentences", "train": 2, "gold": 5}
    ]


@pytest.mark.usefixtures("without_figures")
def test_thresholds_by_type(files: Path, run: Runner) -> None:
    pred, gold, out = files / "pred.jsonl", files / "gold.jsonl", files / "out"
    words = ("analyze", "--pred", pred, "--gold", gold, "--out", out)
    scored = json.loads(run("evaluate", *words[1:5], "--threshold", "Protein=0.9", "--json", "-").out)
    result = run(*words, "--threshold", "Protein=0.9")
    assert (result.code, result.err) == (0, "")
    tables = numbers(out)
    assert tables["scores"]["summary"][0]["predicted"] == scored["micro"]["predicted"]
    assert {"setting": "threshold", "value": "Protein 0.9"} in tables["settings"]["settings"]
    assert run(*words, "--threshold", "Protien=0.9").err.startswith(
        "unknown type with a threshold 'Protien' (did you mean 'Protein'?)"
    )
    assert run(*words, "--threshold", "2").err.startswith("threshold '2': expected a number from 0 to 1")


@pytest.mark.usefixtures("without_figures")
def test_several_runs_have_means_and_deviations(files: Path, run: Runner) -> None:
    pred, gold, out = files / "pred.jsonl", files / "gold.jsonl", files / "out"
    result = run("analyze", "--pred", pred, "--pred", gold, "--gold", gold, "--against", f"best={gold},{gold}", "--out", out)
    assert (result.code, result.err) == (0, "")
    tables = numbers(out)
    overall = tables["runs"]["scores-summary"][0]
    assert overall["f1"] == pytest.approx((0.625 + 1) / 2)
    assert overall["f1_sd"] == pytest.approx(0.375 / 2**0.5)
    length = tables["runs"]["buckets-published"][0]
    assert (length["bucket"], length["support"]) == ("XS", 3)
    assert length["f1"] == pytest.approx((2 / 3 + 1) / 2)
    assert tables["scores"]["summary"][0]["f1"] == 0.625  # the first run
    assert tables["difference"]["published"][0]["baseline_f1"] == pytest.approx((2 / 3 + 1) / 2)
    cards = re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", (out / "report.html").read_text(encoding="utf-8"))
    assert ("Micro F1, mean of 2 runs", "81.25 ± 26.52") in cards
    assert all("±" in value for name, value in cards if name in ("Precision", "Recall", "Macro F1"))
    assert not {"Micro F1", "95% interval", "Errors"} & {name for name, _ in cards}, "numbers of the first run only"


@pytest.mark.usefixtures("without_figures")
def test_model(tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for split, sentences in corpus().splits.items():
        write(sentences, data / f"{split}.jsonl")
    fit(tmp_path / "run")
    result = run("analyze", tmp_path / "run", data, "--split", "dev", "--out", tmp_path / "out", "--device", "cpu")
    assert result.code == 0, result.err
    tables = numbers(tmp_path / "out")
    assert "runs" not in tables
    assert next(iter(tables)) == "scores"
    assert {"probabilities", "training"} <= set(tables), "sections that need the model"
    settings = {row["setting"]: row["value"] for row in tables["settings"]["settings"]}
    assert settings["recipe"] == "seqner"
    assert settings["split"] == "dev"
    assert settings["training.epochs"] == "4"
    seeds = tmp_path / "seeds"
    for seed in (1, 2):
        shutil.copytree(tmp_path / "run", seeds / f"seed-{seed}")
    (seeds / "seeds.json").write_text('{"seeds": [1, 2], "scores": {}}')
    monkeypatch.setattr("spanwise.analysis.analyze.report", lambda title, *rest: title)
    result = run("analyze", seeds, data, "--split", "dev", "--out", tmp_path / "both", "--device", "cpu")
    assert result.code == 0, result.err
    assert (tmp_path / "both" / "report.html").read_text() == "seeds on data dev"
    assert "runs" in numbers(tmp_path / "both")
    write(corpus()["dev"], tmp_path / "seeds.jsonl")
    against = ("--against", tmp_path / "seeds.jsonl", "--out", tmp_path / "compared", "--device", "cpu")
    result = run("analyze", seeds, data, "--split", "dev", *against)
    assert "two systems are named 'seeds'" in result.err


def test_the_widest_span_is_stated() -> None:
    data = corpus()
    for recipe, expected in (("spanner", "2 words"), ("global-pointer", "any number of words")):
        head = model("static", recipe, ("head.max_width=2",) if recipe == "spanner" else (), data=data).head
        (note,) = _width_notes(head, data["test"])
        count = sum(e.range.width > 2 for s in data["test"] for e in s.entities) if recipe == "spanner" else 0
        assert note == f"widest span (ε): {expected}; gold entities that the model cannot predict: {count}"
    assert _width_notes(model("static", "seqner", data=data).head, data["test"]) == ()


@pytest.mark.usefixtures("without_figures")
def test_gold_with_other_sentence_boundaries(tmp_path: Path, run: Runner) -> None:
    """An entity across a sentence boundary joins the sentences in gold, but not for the model."""
    text = "It rained. Then many came. Aspirin acid was seen near oslo."
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text(text)
    (tmp_path / "data" / "a.ann").write_text("T1\tPlace 9 15\t. Then\nT2\tPlace 54 58\toslo\n")
    fit(tmp_path / "run", recipe="spanner")
    result = run("analyze", tmp_path / "run", tmp_path / "data", "--out", tmp_path / "out", "--device", "cpu")
    assert result.code == 0, result.err
    tables = numbers(tmp_path / "out")
    assert tables["scores"]["summary"][0]["support"] == 2
    assert {row["entities"] for row in tables["probabilities"]["by_type"]} == {2}


@pytest.mark.usefixtures("without_figures")
def test_unread_gold_is_reported(files: Path, run: Runner) -> None:
    """Gold entities that are not in the text are not counted."""
    record = {"text": "Oslo was wet in May", "triple_list": [["Oslo", "when", "May"], ["Bergen", "when", "May"]]}
    (files / "gold.jsonl").write_text(json.dumps(record) + "\n")
    result = run("analyze", "--pred", files / "gold.jsonl", "--gold", files / "gold.jsonl", "--out", files / "out")
    assert result.code == 0, result.err
    sections = json.loads((files / "out" / "numbers.json").read_text(encoding="utf-8"))["sections"]
    assert "Gold annotations that could not be read and are not counted: " in sections["scores"]["text"]


@pytest.mark.usefixtures("without_figures")
def test_typing_model(tmp_path: Path, run: Runner) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for split, sentences in corpus().splits.items():
        write(sentences, data / f"{split}.jsonl")
    settings = ("encoder.glove.iterations=2", "head.hidden=8", "head.task=typing")
    fit(tmp_path / "run", recipe="sng", overrides=settings, epochs=1)
    result = run("analyze", tmp_path / "run", data, "--out", tmp_path / "out", "--device", "cpu")
    assert result.code == 0, result.err
    tables = numbers(tmp_path / "out")
    assert tables["scores"]["types"][0]["type"] == "all types"
    assert "accuracy" in tables["scores"]["types"][0]
    assert "buckets" not in tables
    rejected = run("analyze", tmp_path / "run", data, "--against", f"other={data / 'test.jsonl'}", "--out", tmp_path / "more")
    assert rejected.code == 2
    assert "types given spans" in rejected.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "pass either MODEL and DATA, or --pred FILE and --gold FILE"),
        (("--pred", "pred.jsonl"), "pass either MODEL and DATA, or --pred FILE and --gold FILE"),
        (("run",), "pass either MODEL and DATA, or --pred FILE and --gold FILE"),
        (("run", "data", "--pred", "pred.jsonl", "--gold", "gold.jsonl"), "pass either MODEL and DATA"),
        (("run", "data"), "run: no such folder"),
        (("--pred", "none.jsonl", "--gold", "gold.jsonl"), "none.jsonl: no such file or folder"),
        (("--pred", "pred.jsonl", "--gold", "gold.jsonl", "--against", "other.jsonl"), "other.jsonl: no such file or folder"),
        (("--pred", "pred.jsonl", "--gold", "gold.jsonl", "--against", "pred.jsonl"), "two systems are named 'pred'"),
        (("--pred", "train.jsonl", "--gold", "gold.jsonl"), "gold has none of the predictions' ids"),
        (("--pred", "pred.jsonl", "--gold", "gold.jsonl", "--projection", "tsnee"), "unknown projection 'tsnee'"),
    ],
)
def test_errors_are_one_line(
    files: Path, run: Runner, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(files)
    result = run("analyze", *arguments, "--out", "out")
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not (files / "out").exists()


def test_missing_projection_package(files: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    for inputs in ((files / "none", files / "none"), ("--pred", files / "pred.jsonl", "--gold", files / "gold.jsonl")):
        result = run("analyze", *inputs, "--projection", "umap", "--out", files / "out")
        assert (result.code, result.err) == (2, "the projection umap requires UMAP; run pip install umap-learn\n")
        assert not (files / "out").exists()


def test_other_folders_are_not_overwritten(files: Path, run: Runner) -> None:
    result = run("analyze", "--pred", "none.jsonl", "--gold", "none.jsonl", "--out", files)
    assert (result.code, result.err) == (2, f"{files}: is not empty and contains no analysis; choose another folder\n")


@pytest.mark.usefixtures("without_figures")
def test_parent_folders_are_created(files: Path, run: Runner) -> None:
    gold = files / "gold.jsonl"
    assert run("analyze", "--pred", gold, "--gold", gold, "--out", files / "a" / "b" / "out").code == 0
    assert (files / "a" / "b" / "out" / "report.html").is_file()
    result = run("analyze", "--pred", files / "none.jsonl", "--gold", gold, "--out", gold / "out")
    assert result.code == 2
    assert "gold.jsonl/out: cannot create the folder" in result.err


def test_out_is_required(run: Runner) -> None:
    result = run("analyze", "--pred", "a", "--gold", "b")
    assert result.code == 2
    assert "--out" in result.err


def test_missing_matplotlib(files: Path) -> None:
    command = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from spanwise.cli import main\n"
        "main(['analyze', '--pred', 'pred.jsonl', '--gold', 'gold.jsonl', '--out', 'out'])"
    )
    result = subprocess.run([sys.executable, "-c", command], cwd=files, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "figures require matplotlib; run pip install 'spanwise[analysis]'\n"
