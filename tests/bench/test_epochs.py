"""``bench/epochs.py`` and ``bench/resume.py`` on a tiny corpus."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import epochs
import pytest
import resume
import torch
from safetensors.torch import load_file, save_file
from tiny import STATIC, corpus, fit

import spanwise
from spanwise.training.data import read_training_corpus


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for split, sentences in corpus(60).splits.items():
        spanwise.write(sentences, folder / f"{split}.jsonl")
    return folder


def test_steps_are_timed_in_turns(
    data: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", str(data), "--encoder", str(tiny_bert), "--epochs", "2", "--batch-size", "8", "--sentences", "24"]
    words += ["--device", "cpu", "--steps", "2", "--rounds", "3", "--peak", "0.001", "--json", str(tmp_path / "rows.json")]
    words += ["--set", "training.adversarial=0", "--set", "biaffine:head.hidden_dropout=0"]
    monkeypatch.setattr(sys, "argv", ["epochs.py", *words, "--plain", "global-pointer", "biaffine"])
    epochs.main()
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert list(rows) == ["global-pointer", "global-pointer (plain)", "biaffine", "biaffine (plain)"]
    for row in rows.values():
        assert [len(row[name]) for name in ("epochs", "step_ms", "predict")] == [2, 3, 3]
        assert row["steps_per_epoch"] == 3
        assert row["ms_per_step"] == pytest.approx(sorted(row["step_ms"])[1], abs=1e-3)
        # operations per second, as a share of 1 GFLOP/s
        seconds = row["ms_per_step"] / 1000
        assert row["share_of_peak"] == pytest.approx(row["gflop_per_step"] / seconds, rel=0.02)
    assert rows["global-pointer"]["gflop_per_step"] == rows["global-pointer (plain)"]["gflop_per_step"] > 0
    for row in rows.values():
        for key in ("step_ms", "predict"):
            quotients = [mine / other for mine, other in zip(row[key], rows["global-pointer"][key], strict=True)]
            assert row[f"{key}_ratio"][1] == pytest.approx(sorted(quotients)[1], abs=1e-3)
    lines = [line.partition("] ")[2] for line in capsys.readouterr().out.splitlines() if line.startswith("[")]
    summaries = [line for line in lines if "last epoch" in line]
    assert [line.count("times global-pointer") for line in summaries] == [0, 2, 2, 2]
    assert [line.partition(":")[0] for line in lines[-4:]] == list(rows)
    assert "biaffine: epoch 2 in " in "\n".join(lines)


def test_an_interruption_keeps_the_finished_parts(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--data", str(data), "--encoder", "static", "--epochs", "2", "--device", "cpu", "--steps", "2", "--rounds", "2"]
    words += [word for setting in STATIC for word in ("--set", setting)]
    monkeypatch.setattr(sys, "argv", ["epochs.py", *words, "--json", str(tmp_path / "rows.json"), "seqner"])
    monkeypatch.setattr(epochs, "predict", lambda *arguments: interrupt())
    with pytest.raises(KeyboardInterrupt):
        epochs.main()
    row = json.loads((tmp_path / "rows.json").read_text())["seqner"]
    assert [len(row[name]) for name in ("epochs", "step_ms")] == [2, 2]
    assert "predict" not in row


def interrupt() -> None:
    raise KeyboardInterrupt


def test_operations_of_one_shape_are_counted_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = SimpleNamespace(epochs=1, batch_size=8, encoder="static", device="cpu", set=STATIC)
    trainer = epochs.make_trainer("seqner", read_training_corpus(str(data), None, print), options)
    first, second = trainer.batches[0], trainer.batches[1]
    counted = []
    make = trainer.steps.make
    monkeypatch.setattr(trainer.steps, "make", lambda batch: counted.append(batch) or make(batch))
    one, other = (epochs.count_operations(trainer, [batch]) for batch in (first, second))
    assert one > 0
    counted.clear()
    mean = epochs.count_operations(trainer, [first, first, second, first])
    assert len(counted) == len({first.key, second.key})
    assert mean == pytest.approx((3 * one + other) / 4)


def test_a_setting_can_be_that_of_one_recipe() -> None:
    settings = ["head.depth=1", "spanwise:encoder.masking=0", "biaffine:head.size=8", "encoder.name=a:b"]
    assert epochs.overrides_of("spanwise", settings) == ["head.depth=1", "encoder.masking=0", "encoder.name=a:b"]


def test_a_resumed_run_is_compared_bit_by_bit(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--data", str(data), "--encoder", "static", "--epochs", "2", "--batch-size", "8", "--device", "cpu"]
    words += [word for setting in STATIC for word in ("--set", setting)]
    monkeypatch.setattr(sys, "argv", ["resume.py", *words, "--json", str(tmp_path / "rows.json"), "seqner"])
    with pytest.raises(SystemExit) as caught:
        resume.main()
    row = json.loads((tmp_path / "rows.json").read_text())["seqner"]
    assert not caught.value.code
    assert row["interrupted_after_steps"] == 12
    assert row["resumed"]["is_equal"]
    assert row["resumed"]["tensors"] > 0


def test_a_difference_of_one_bit_is_found(tmp_path: Path) -> None:
    for name in ("first", "second"):
        fit(tmp_path / name, epochs=1)
    weights = load_file(tmp_path / "second" / "model.safetensors")
    name = min(weights)
    flat = weights[name].view(-1)
    flat[0] = torch.nextafter(flat[0], torch.tensor(torch.inf))
    save_file(weights, tmp_path / "second" / "model.safetensors")
    compared = resume.differences(tmp_path / "first", tmp_path / "second")
    assert (compared["is_equal"], compared["unequal_tensors"], compared["same_scores"]) == (False, 1, True)
    assert 0 < compared["largest_difference"] < 1e-6
