"""Seeds and sweeps."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from tiny import STATIC, corpus, digest, fit, quiet

from spanwise import Corpus, SpanwiseError
from spanwise.core.percentages import percent
from spanwise.recipes.resolve import Choices
from spanwise.training.run import RunOptions
from spanwise.training.seeds import train_seeds
from spanwise.training.sweep import train_sweep

CHOICES = Choices("seqner", "static", overrides=STATIC, settings={"epochs": 3, "batch_size": 8})
FAST = CHOICES.adding("training.head_rate=0.03")
QUIET = RunOptions("cpu", log=quiet)
RESUME = RunOptions("cpu", resume=True, log=quiet)


def report(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return values


def test_seeds_give_mean_and_deviation(tmp_path: Path) -> None:
    lines: list[str] = []
    summary = train_seeds(corpus(60), tmp_path, [1, 2, 3], FAST, RunOptions("cpu", log=lines.append))
    assert json.loads((tmp_path / "seeds.json").read_text()) == summary
    assert summary["seeds"] == [1, 2, 3]
    for split in ("dev", "test"):
        f1 = [report(tmp_path / f"seed-{seed}")["scores"][split]["micro"]["f1"] for seed in (1, 2, 3)]
        assert summary["scores"][split] == {"mean": mean(f1), "deviation": stdev(f1), "f1": f1}
        assert f"{split}: F1 {percent(mean(f1))} ± {percent(stdev(f1))} over 3 seeds ({', '.join(map(percent, f1))})" in lines
    assert [report(tmp_path / f"seed-{seed}")["seed"] for seed in (1, 2, 3)] == [1, 2, 3]
    fit(tmp_path / "alone", epochs=3, seed=2)
    assert digest(tmp_path / "alone") == digest(tmp_path / "seed-2")
    again = train_seeds(corpus(60), tmp_path, [1, 2, 3, 4], FAST, RESUME)
    assert again["scores"]["dev"]["f1"][:3] == summary["scores"]["dev"]["f1"]
    assert len(again["scores"]["dev"]["f1"]) == 4


def test_a_finished_run_is_reused_only_with_the_same_settings_and_data(tmp_path: Path) -> None:
    choices = FAST.adding(epochs=1)
    train_seeds(corpus(), tmp_path, [1], choices, QUIET)
    with pytest.raises(SpanwiseError, match=r"seed-1: cannot resume with changed settings: training.epochs"):
        train_seeds(corpus(), tmp_path, [1], FAST, RESUME)
    with pytest.raises(SpanwiseError, match=r"training.head_rate"):
        train_seeds(corpus(), tmp_path, [1], choices.adding("training.head_rate=0.02"), RESUME)
    with pytest.raises(SpanwiseError, match="the train data has changed since the run was started"):
        train_seeds(corpus(70), tmp_path, [1], choices, RESUME)


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    lines: list[str] = []
    summary = train_seeds(corpus(), tmp_path, [7], FAST.adding(epochs=1), RunOptions("cpu", log=lines.append))
    assert "note: --seeds 7 is one run, with seed 7; to train several, list their seeds, as in 1,2,3" in lines
    assert not any("±" in line for line in lines)
    assert summary["scores"]["dev"]["deviation"] == 0.0


def test_a_repeated_seed(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="--seeds 1,2,1: a seed is repeated"):
        train_seeds(corpus(), tmp_path, [1, 2, 1], CHOICES, QUIET)


def test_another_setting_of_the_seed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match=r"--seeds and --set training.seed=5 cannot be combined"):
        train_seeds(corpus(), tmp_path / "runs", [1, 2], FAST.adding("training.seed=5"), QUIET)
    assert not (tmp_path / "runs").exists()


def test_a_sweep_chooses_on_dev_and_tests_the_best_run(tmp_path: Path) -> None:
    lines: list[str] = []
    sweep = ["training.head_rate=0,0.03", "encoder.dropout=0,0.5"]
    summary = train_sweep(corpus(60), tmp_path, sweep, CHOICES.adding(seed=2), RunOptions("cpu", log=lines.append))
    assert json.loads((tmp_path / "sweep.json").read_text()) == summary
    rows = summary["grid"]
    assert len(rows) == 4
    assert [row["dev"] for row in rows] == sorted((row["dev"] for row in rows), reverse=True)
    assert summary["chosen"] == rows[0]["settings"]
    assert "training.head_rate=0.03" in summary["chosen"]
    assert summary["test"]["micro"]["support"] > 0
    for row in rows:
        values = report(tmp_path / row["folder"])
        assert values["scores"]["dev"]["micro"]["f1"] == row["dev"]
        assert ("test" in values["scores"]) == (row is rows[0])
        assert values["seed"] == 2
    assert report(tmp_path / rows[0]["folder"])["scores"]["test"] == summary["test"]
    assert len([line for line in lines if line.startswith("dev F1 ")]) >= 4
    assert f"test F1 {percent(summary['test']['micro']['f1'])}" in lines[-1]
    # Training the best settings alone gives the same scores.
    alone = fit(tmp_path / "alone", None, summary["chosen"], epochs=3, seed=2, head_rate=None)
    assert alone.scores["test"]["micro"] == summary["test"]["micro"]
    resumed = train_sweep(corpus(60), tmp_path, sweep, CHOICES.adding(seed=2), RESUME)
    assert resumed == summary


def test_a_sweep_without_a_test_split(tmp_path: Path) -> None:
    data = Corpus({split: sentences for split, sentences in corpus().splits.items() if split != "test"})
    summary = train_sweep(data, tmp_path, ["training.head_rate=0.01"], CHOICES.adding(epochs=1), QUIET)
    assert summary["test"] is None


@pytest.mark.parametrize(
    ("sweep", "message"),
    [("head_rate=1,2", "expected section.key=a,b,c"), ("training.head_rate", "expected section.key=a,b,c"),
     ("training.head_rate=", "expected section.key=a,b,c"), ("training.head_rate=1,,2", "expected section.key=a,b,c"),
     ("training.head_rate=1,1", "a value is repeated"), ("training.hed_rate=1,2", "did you mean 'training.head_rate'"),
     ("head.tagging=softmax,soft", "head seqner: tagging: input should be 'softmax' or 'crf'"),
     ("encoder.hidden=8,0", "the static encoder: hidden")],
)  # fmt: skip
def test_wrong_sweeps_are_refused_before_training(tmp_path: Path, sweep: str, message: str) -> None:
    with pytest.raises(SpanwiseError, match=message):
        train_sweep(corpus(), tmp_path, [sweep], Choices("seqner", "static"), QUIET)
    assert not list(tmp_path.iterdir())


def test_groups_need_a_single_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for call in (
        lambda: train_seeds(corpus(), tmp_path, [1], CHOICES, QUIET),
        lambda: train_sweep(corpus(), tmp_path, [], CHOICES, QUIET),
    ):
        with pytest.raises(SpanwiseError, match="one run at a time"):
            call()


def test_a_setting_has_one_axis(tmp_path: Path) -> None:
    sweep = ["training.head_rate=0.01", "encoder.dropout=0,0.5", "training.head_rate=0.03"]
    with pytest.raises(SpanwiseError, match=r"--sweep training.head_rate: given twice; pass all its values at once"):
        train_sweep(corpus(), tmp_path / "runs", sweep, CHOICES, QUIET)
    assert not (tmp_path / "runs").exists()


def test_points_need_different_folder_names(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="two points have the same folder name"):
        train_sweep(corpus(), tmp_path / "runs", ["encoder.vectors=w/v.txt,w_v.txt"], Choices(), QUIET)


def test_unknown_settings_are_named(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match=r"training.head_ratee' \(did you mean 'training.head_rate'"):
        train_seeds(corpus(), tmp_path / "runs", [1], CHOICES.adding(head_ratee=5), QUIET)
    assert not (tmp_path / "runs").exists()
