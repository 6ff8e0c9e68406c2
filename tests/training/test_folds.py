"""Cross-validation with a file of folds."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev

import pytest
from tiny import STATIC, corpus, quiet, with_relations

import spanwise
from spanwise import Corpus, SpanwiseError
from spanwise.cli import main
from spanwise.core.percentages import percent
from spanwise.recipes.resolve import Choices
from spanwise.training.folds import cut_folds, train_folds
from spanwise.training.run import RunOptions

CHOICES = Choices("gp-relations", "static", overrides=STATIC, settings={"epochs": 2, "batch_size": 8})


@pytest.fixture
def folds(tmp_path: Path) -> Path:
    path = tmp_path / "three.json"
    ids = [f"s{number}" for number in range(40)]
    path.write_text(json.dumps([{"fold": k, "test": ids[k::3]} for k in range(3)]))
    return path


def test_every_fold_is_tested_once_and_not_trained_on(folds: Path) -> None:
    data = corpus()
    every = [sentence.id for split in data for sentence in data[split]]
    tested = []
    for number, part in cut_folds(data, folds):
        assert set(part) == {"train", "test"}
        assert [s.id for s in part["test"]] == [name for name in every if int(name[1:]) % 3 == number]
        assert {s.id for s in part["train"]} == set(every) - {s.id for s in part["test"]}
        tested += [s.id for s in part["test"]]
    assert sorted(tested) == sorted(every)


def test_folds_give_mean_and_deviation_and_can_be_resumed(tmp_path: Path, folds: Path) -> None:
    data, out, lines = with_relations(corpus()), tmp_path / "out", []
    summary = train_folds(data, out, folds, CHOICES, RunOptions("cpu", log=lines.append))
    assert json.loads((out / "folds.json").read_text()) == summary
    assert summary["folds"] == [0, 1, 2]
    reports = [json.loads((out / f"fold-{k}" / "run.json").read_text()) for k in range(3)]
    assert [report["data"]["test"]["sentences"] for report in reports] == [14, 13, 13]
    macro = [report["scores"]["test"]["macro"]["f1"] for report in reports]
    assert summary["scores"]["entities macro F1"] == {"mean": mean(macro), "deviation": stdev(macro), "folds": macro}
    strict = [report["scores"]["test"]["relations"]["strict"]["micro"]["f1"] for report in reports]
    assert summary["scores"]["relations strict micro F1"]["folds"] == strict
    assert f"relations strict micro F1: {percent(mean(strict))} ± {percent(stdev(strict))} over 3 folds" in lines
    assert f"entities macro F1: {percent(mean(macro))} ± {percent(stdev(macro))} over 3 folds" in lines
    (out / "fold-1" / "run.json").unlink()
    (out / "fold-1").rename(tmp_path / "away")
    before = (out / "fold-0" / "run.json").read_bytes()
    assert train_folds(data, out, folds, CHOICES, RunOptions("cpu", resume=True, log=quiet)) == summary
    assert (out / "fold-0" / "run.json").read_bytes() == before


def test_folds_on_the_command_line(tmp_path: Path, folds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for split, sentences in corpus().splits.items():
        spanwise.write(sentences, data / f"{split}.jsonl")
    fixed = [word for setting in STATIC for word in ("--set", setting)]
    arguments = ["train", data, "--out", tmp_path / "out", "--folds", folds, "--encoder", "static", "--recipe", "seqner",
                 "--epochs", 1, "--device", "cpu", *fixed]  # fmt: skip
    with pytest.raises(SystemExit) as exit_info:
        main([str(argument) for argument in arguments])
    assert not exit_info.value.code
    assert "entities macro F1:" in capsys.readouterr().out
    scores = json.loads((tmp_path / "out" / "folds.json").read_text())["scores"]
    assert set(scores) == {"entities macro F1", "entities micro F1"}
    with pytest.raises(SystemExit) as exit_info:
        main([str(argument) for argument in [*arguments, "--seeds", "1,2"]])
    assert exit_info.value.code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "expected folds as"),
        ('[{"fold": 0}]', "expected folds as"),
        ('[{"fold": -1, "test": ["s0"]}]', "expected folds as"),
        ("[]", "at least one fold"),
        ('[{"fold": 0, "test": ["s0"]}, {"fold": 1, "test": []}]', "fold 1 has no sentences"),
        ('[{"fold": 0, "test": ["s0"]}, {"fold": 0, "test": ["s1"]}]', "each with a different number"),
        ('[{"fold": 0, "test": ["x"]}]', "fold 0: 'x' is not in the data"),
        ('[{"fold": 0, "test": ["s1"]}, {"fold": 1, "test": ["s1"]}]', "fold 1: 's1' is already in an earlier fold"),
    ],
)
def test_wrong_folds(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "folds.json"
    path.write_text(text)
    with pytest.raises(SpanwiseError, match=message):
        list(cut_folds(corpus(), path))


def test_folds_need_unique_ids(tmp_path: Path, folds: Path) -> None:
    twice = Corpus({"train": corpus()["train"], "test": corpus()["train"]})
    with pytest.raises(SpanwiseError, match="occurs 2 times"):
        list(cut_folds(twice, folds))
    with pytest.raises(SpanwiseError, match="cannot be read"):
        list(cut_folds(corpus(), tmp_path / "none.json"))
