"""Training steps: accumulated batches, values that are not finite, and logs."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from steps import gradients, make_trainer
from tiny import corpus, fit, model
from torch.utils.data import DataLoader, Dataset

from spanwise import Corpus, Entity, Sentence, SpanwiseError
from spanwise.batching.batches import TrainingBatches
from spanwise.heads.base import Head
from spanwise.prediction import windows
from spanwise.runs.folder import RunFolder
from spanwise.training.checkpoint import save_checkpoint
from spanwise.training.finite_check import FiniteCheck

# --- several batches per step ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", ["seqner", "seqner-crf", "spanner"])
def test_accumulated_batches_equal_one_larger_batch(tmp_path: Path, recipe: str) -> None:
    joined = make_trainer(tmp_path, recipe, ("training.accumulate=3",))
    order = sorted(range(60), key=lambda n: len(joined.corpus["train"][n].words))
    parts = [order[:1], order[50:57], order[20:23]]  # of different sizes and lengths
    several = gradients(joined, parts)
    one = gradients(make_trainer(tmp_path, recipe), [[n for part in parts for n in part]])
    assert several.keys() == one.keys()
    for name in one:
        torch.testing.assert_close(several[name], one[name], atol=1e-6, rtol=1e-4, msg=name)
    # The same for the last step of an epoch, which has fewer batches.
    few = gradients(joined, parts[:2])
    direct = gradients(make_trainer(tmp_path, recipe), [[n for part in parts[:2] for n in part]])
    for name in one:
        torch.testing.assert_close(few[name], direct[name], atol=1e-6, rtol=1e-4, msg=name)


def test_an_update_counts_as_one_step_of_the_schedule(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path / "run", overrides=("training.accumulate=3", "training.epochs=2"))
    assert len(trainer.batches) == 16
    assert "6 steps" in trainer.plan  # 3 + 3 + 2 batches per epoch
    trainer.train()
    assert trainer.steps.schedule.last_epoch == 6
    assert trainer.steps.schedule.get_last_lr() == [0, 0]


def test_checkpoints_count_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def record(run: RunFolder, state: dict[str, Any], *rest: Any) -> None:
        written.append(state["step"])
        save_checkpoint(run, state, *rest)

    monkeypatch.setattr("spanwise.training.loop.save_checkpoint", record)
    fit(tmp_path / "run", epochs=2, accumulate=3, checkpoint_steps=2)
    assert written == [6, 8, 11, 16]  # after updates 2, 3 (the end of an epoch), 4 and 6


def test_gradients_are_clipped(tmp_path: Path) -> None:
    def norm(clip: float) -> float:
        clipped = gradients(make_trainer(tmp_path, overrides=(f"training.clip={clip}",)), [[0, 1, 2]])
        return float(torch.cat([gradient.flatten() for gradient in clipped.values()]).norm())

    assert norm(0.01) == pytest.approx(0.01, rel=1e-3)
    assert norm(1000) == pytest.approx(norm(2000))
    assert norm(1000) > 0.1


# --- values that are not finite -------------------------------------------------------------------------------------------------


def poisoned() -> Corpus:
    """The tiny corpus with a sentence whose encoding will be NaN."""
    data = corpus(60)
    bad = Sentence("poison-7", ("oslo", "brings", "plague"), (Entity("Place", ((0, 1),)),))
    return Corpus({**data.splits, "train": (*data["train"][:30], bad, *data["train"][30:])})


def test_the_batch_of_a_loss_that_is_not_finite_is_named(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path / "run", data=poisoned())
    encoder: Any = trainer.model.encoder
    with torch.no_grad():
        encoder.words.learned.weight[encoder.vocabulary.word_indices(["plague"])] = float("nan")
    step = next(n for n, numbers in enumerate(trainer.batches.batches) if 30 in numbers)
    with pytest.raises(SpanwiseError) as caught:
        trainer.train()
    message = str(caught.value)
    assert message.startswith(f"the loss of step {step + 1} (epoch 1) is not finite; sentences of its batch: ")
    assert "poison-7" in message
    assert "training.precision=fp32" in message
    assert "\n" not in message
    assert trainer.steps.schedule.last_epoch <= step + 1


def test_a_head_with_an_infinite_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make_trainer(tmp_path / "run", overrides=("training.epochs=3",))
    loss, calls = type(trainer.model.head).loss, []

    def failing(self: Head, *arguments: Any) -> Any:
        calls.append(1)
        losses = loss(self, *arguments)
        if len(calls) == 12:
            losses.sums = losses.sums * float("inf")
        return losses

    monkeypatch.setattr(type(trainer.model.head), "loss", failing)
    with pytest.raises(SpanwiseError, match=r"the loss of step 12 \(epoch 2\) is not finite") as caught:
        trainer.train()
    names = [trainer.corpus["train"][number].id for number in trainer.batches.batches[11]]
    assert ", ".join(names) in str(caught.value)


def test_the_batch_of_a_gradient_that_is_not_finite_is_named(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path / "run")
    calls: list[int] = []
    weight = next(trainer.model.head.parameters())
    weight.register_hook(lambda gradient: gradient * float("nan") if calls.append(1) or len(calls) == 5 else gradient)  # type: ignore[func-returns-value]
    with pytest.raises(SpanwiseError, match=r"the gradient of step 5 \(epoch 1\) is not finite"):
        trainer.train()


class KilledDataset(Dataset[int]):
    """A dataset whose process is killed, as by a system without memory."""

    def __getitem__(self, index: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return index


def test_a_killed_process_that_builds_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def loader(*arguments: object, **options: object) -> DataLoader[int]:
        return DataLoader(KilledDataset(), batch_size=None, sampler=range(3), num_workers=1)

    monkeypatch.setattr("spanwise.training.loop.DataLoader", loader)
    with pytest.raises(
        SpanwiseError, match=r"^a process that builds batches died: .*; add --resume to the command to continue"
    ):
        fit(tmp_path / "run", epochs=1)


@pytest.mark.parametrize("size", [8, 1])
def test_too_little_memory_for_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    trainer = make_trainer(tmp_path / "run", overrides=(f"training.batch_size={size}",))
    monkeypatch.setattr(trainer.steps, "make", lambda packed, is_update: torch.empty(10**15))
    with pytest.raises(SpanwiseError) as caught:
        trainer.train()
    longest = max(len(trainer.batches.sentences[index].words) for index in trainer.batches.batches[0])
    problem = f"not enough memory for step 1: a batch of {size} sentence{'s' * (size > 1)}, the longest of {longest} words"
    advice = "; pass --batch-size 4 --set training.accumulate=2, which" if size > 1 else "; train on shorter sentences"
    assert str(caught.value).startswith(problem)
    assert advice in str(caught.value)
    monkeypatch.setattr(trainer.steps, "make", lambda packed, is_update: torch.zeros(1) @ torch.zeros(2))
    with pytest.raises(RuntimeError, match="size"):
        trainer.train()


def test_the_check_is_delayed_but_names_the_right_step() -> None:
    built, train = model("static"), corpus(60)["train"]
    batches = TrainingBatches(
        built.encoder, built.head, train, built.encoder.prepare(train), epochs=2, batch_size=8, budget=None, seed=1
    )
    check = FiniteCheck(batches, train, interval=64)
    for step in range(10):
        check.add(step, torch.tensor(float("nan") if step == 9 else 1.0), torch.tensor(1.0))
    with pytest.raises(SpanwiseError, match=r"the loss of step 10 \(epoch 2\)"):
        check.check()
    finite = FiniteCheck(batches, train, interval=4)
    for step in range(10):
        finite.add(step, torch.tensor(1.0), None)
    finite.check()
    assert not finite._recent


# --- logs ---------------------------------------------------------------------------------------------------


def test_the_loss_of_an_epoch_is_the_mean_of_its_batches(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path / "run", overrides=("training.epochs=1", "training.head_rate=0"))
    trainer.train()
    trainer.model.train()
    with torch.no_grad():
        losses = [float(trainer.model(batch.inputs, batch.targets)["loss"]) for batch in map(trainer.batches.batch, range(8))]
    (row,) = (json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    assert row["loss"] == pytest.approx(np.mean(losses), abs=2e-6)


def test_a_bar_on_a_terminal_and_lines_in_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines: list[str] = []
    fit(tmp_path / "log", corpus(), epochs=2, log=lines.append)
    assert [line.split(":")[0] for line in lines if line.startswith("epoch")] == ["epoch 1", "epoch 2"]

    import io
    import sys

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen, lines = Terminal(), []
    monkeypatch.setattr(sys, "stderr", screen)
    fit(tmp_path / "bar", corpus(), epochs=2, log=lines.append)
    assert not any(line.startswith("epoch") for line in lines)
    assert "epoch 2: loss" in screen.getvalue()


def test_dev_is_predicted_in_windows_during_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = partial(windows.window_ranges, max_words=2, overlap=1)  # so short that predictions differ
    monkeypatch.setattr(windows, "window_ranges", short)
    run = fit(tmp_path / "run", corpus(60, dev=40), recipe="spanner")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert max(row["dev"]["f1"] for row in rows) == pytest.approx(run.scores["dev"]["micro"]["f1"], abs=1e-6)
    assert 0 < run.scores["dev"]["micro"]["f1"] < 1
