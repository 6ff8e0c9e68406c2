"""Seeds and sweeps."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from tiny import STATIC, corpus, digest, fit, quiet

from spanwise import Corpus, SpanwiseError
from spanwise.training.several import train_seeds, train_sweep

OPTIONS: dict[str, Any] = {"recipe": "seqner", "encoder": "static", "epochs": 3, "batch_size": 8, "device": "cpu", "log": quiet}
FIXED = (*STATIC, "training.head_rate=0.03")


def report(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def test_seeds_give_mean_and_deviation(tmp_path: Path) -> None:
    summary = train_seeds(corpus(60), tmp_path, [1, 2, 3], overrides=FIXED, **OPTIONS)
    assert json.loads((tmp_path / "seeds.json").read_text()) == summary
    assert summary["seeds"] == [1, 2, 3]
    for split in ("dev", "test"):
        f1 = [report(tmp_path / f"seed-{seed}")["scores"][split]["micro"]["f1"] for seed in (1, 2, 3)]
        assert summary["scores"][split] == {"mean": mean(f1), "deviation": stdev(f1), "f1": f1}
    assert [report(tmp_path / f"seed-{seed}")["seed"] for seed in (1, 2, 3)] == [1, 2, 3]
    fit(tmp_path / "alone", epochs=3, seed=2)
    assert digest(tmp_path / "alone") == digest(tmp_path / "seed-2")
    again = train_seeds(corpus(60), tmp_path, [1, 2, 3, 4], overrides=FIXED, resume=True, **OPTIONS)
    assert again["scores"]["dev"]["f1"][:3] == summary["scores"]["dev"]["f1"]
    assert len(again["scores"]["dev"]["f1"]) == 4


def test_a_finished_run_counts_only_if_it_is_the_one_asked_for(tmp_path: Path) -> None:
    fast = {**OPTIONS, "epochs": 1}
    train_seeds(corpus(), tmp_path, [1], overrides=FIXED, **fast)
    with pytest.raises(SpanwiseError, match=r"seed-1: cannot resume with other settings than it began with: training.epochs"):
        train_seeds(corpus(), tmp_path, [1], overrides=FIXED, resume=True, **OPTIONS)
    with pytest.raises(SpanwiseError, match=r"training.head_rate"):
        train_seeds(corpus(), tmp_path, [1], overrides=(*STATIC, "training.head_rate=0.02"), resume=True, **fast)
    with pytest.raises(SpanwiseError, match="the train data is not what it began with"):
        train_seeds(corpus(70), tmp_path, [1], overrides=FIXED, resume=True, **fast)


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    summary = train_seeds(corpus(), tmp_path, [7], overrides=FIXED, **{**OPTIONS, "epochs": 1})
    assert summary["scores"]["dev"]["deviation"] == 0.0


def test_a_seed_named_twice(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="--seeds 1,2,1: a seed is named twice"):
        train_seeds(corpus(), tmp_path, [1, 2, 1], **OPTIONS)


def test_a_sweep_chooses_on_dev_and_tests_what_it_chose(tmp_path: Path) -> None:
    said: list[str] = []
    sweep = ["training.head_rate=0,0.03", "encoder.dropout=0,0.5"]
    summary = train_sweep(corpus(60), tmp_path, sweep, overrides=STATIC, seed=2, **{**OPTIONS, "log": said.append})
    assert json.loads((tmp_path / "sweep.json").read_text()) == summary
    rows = summary["grid"]
    assert len(rows) == 4
    assert [row["dev"] for row in rows] == sorted((row["dev"] for row in rows), reverse=True)
    assert summary["chosen"] == rows[0]["settings"]
    assert "training.head_rate=0.03" in summary["chosen"]
    assert summary["test"]["micro"]["support"] > 0
    for row in rows:
        found = report(tmp_path / row["folder"])
        assert found["scores"]["dev"]["micro"]["f1"] == row["dev"]
        assert ("test" in found["scores"]) == (row is rows[0])
        assert found["seed"] == 2
    assert report(tmp_path / rows[0]["folder"])["scores"]["test"] == summary["test"]
    assert len([line for line in said if line.startswith("dev F1 ")]) >= 4
    assert f"test F1 {summary['test']['micro']['f1']:.4f}" in said[-1]
    # The chosen one is what training it alone would have given.
    alone = fit(tmp_path / "alone", None, summary["chosen"], epochs=3, seed=2, head_rate=None)
    assert alone.scores["test"]["micro"] == summary["test"]["micro"]
    resumed = train_sweep(corpus(60), tmp_path, sweep, overrides=STATIC, seed=2, resume=True, **OPTIONS)
    assert resumed == summary


def test_a_sweep_without_a_test_split(tmp_path: Path) -> None:
    data = Corpus({split: found for split, found in corpus().splits.items() if split != "test"})
    summary = train_sweep(data, tmp_path, ["training.head_rate=0.01"], overrides=STATIC, **{**OPTIONS, "epochs": 1})
    assert summary["test"] is None


@pytest.mark.parametrize(
    ("sweep", "message"),
    [("head_rate=1,2", "expected section.key=a,b,c"), ("training.head_rate", "expected section.key=a,b,c"),
     ("training.head_rate=", "expected section.key=a,b,c"), ("training.head_rate=1,,2", "expected section.key=a,b,c"),
     ("training.head_rate=1,1", "a value is named twice"), ("training.hed_rate=1,2", "did you mean 'training.head_rate'"),
     ("head.tagging=softmax,soft", "head seqner: tagging: input should be 'softmax' or 'crf'"),
     ("encoder.hidden=8,0", "the static encoder: hidden")],
)  # fmt: skip
def test_mistakes_are_found_before_anything_is_trained(tmp_path: Path, sweep: str, message: str) -> None:
    with pytest.raises(SpanwiseError, match=message):
        train_sweep(corpus(), tmp_path, [sweep], **OPTIONS)
    assert not list(tmp_path.iterdir())


def test_not_in_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for call in (
        lambda: train_seeds(corpus(), tmp_path, [1], **OPTIONS),
        lambda: train_sweep(corpus(), tmp_path, [], **OPTIONS),
    ):
        with pytest.raises(SpanwiseError, match="one run at a time"):
            call()


def test_points_need_folders_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match="two points would have a folder of one name"):
        train_sweep(corpus(), tmp_path / "runs", ["encoder.vectors=w/v.txt,w_v.txt"], log=quiet)


def test_options_that_are_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError, match=r"training.head_ratee' \(did you mean 'training.head_rate'"):
        train_seeds(corpus(), tmp_path / "runs", [1], recipe="seqner", encoder="static", head_ratee=5, log=quiet)
    assert not (tmp_path / "runs").exists()
