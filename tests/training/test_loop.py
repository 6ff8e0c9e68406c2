"""Steps: joining batches, going bad, and counting."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import STATIC, corpus, fit, model, quiet
from torch import Tensor

from spanwise import Corpus, Entity, Sentence, SpanwiseError
from spanwise.batching.batches import Batch, PackedBatch, TrainingBatches
from spanwise.heads.base import Head
from spanwise.models.model import Model
from spanwise.prediction import windows as pieces
from spanwise.recipes.catalog import configure
from spanwise.training.checkpoint import save_checkpoint
from spanwise.training.loop import Trainer
from spanwise.training.watch import Watch


def trainer(folder: Path, recipe: str = "seqner", overrides: tuple[str, ...] = (), data: Corpus | None = None) -> Trainer:
    torch.manual_seed(0)
    still = ("encoder.dropout=0", "encoder.word_dropout=0", "head.dropout=0")
    config = configure(recipe, encoder="static", overrides=(*STATIC, *still, "training.batch_size=8", *overrides))
    data = data or corpus(60)
    return Trainer(Model.build(config, data), data, folder, device="cpu", log=quiet)


# --- several batches to a step ----------------------------------------------------------------------------------------


def packed(made: Trainer, numbers: list[int]) -> PackedBatch:
    train = made.corpus["train"]
    encoder, head = made.model.encoder, made.model.head
    prepared = encoder.prepare([train[n] for n in numbers])
    return PackedBatch.pack(
        Batch(np.array(numbers), encoder.collate(prepared), head.targets([train[n] for n in numbers], gold=True))
    )


def gradients(made: Trainer, parts: list[list[int]]) -> dict[str, Tensor]:
    """What the optimiser is given for a step over some batches."""
    found: dict[str, Tensor] = {}

    def taken() -> None:
        found.update((name, p.grad.clone()) for name, p in made.model.named_parameters() if p.grad is not None)

    made.stepper.step, made.schedule.step = taken, lambda: None
    made.wrapped.train()
    for part in parts:
        made._backward(packed(made, part))
    made._update()
    return found


@pytest.mark.parametrize("recipe", ["seqner", "seqner-crf", "spanner"])
def test_accumulated_batches_are_one_larger_batch(tmp_path: Path, recipe: str) -> None:
    joined = trainer(tmp_path, recipe, ("training.accumulate=3",))
    order = sorted(range(60), key=lambda n: len(joined.corpus["train"][n].words))
    parts = [order[:1], order[50:57], order[20:23]]  # of unlike sizes and lengths
    several = gradients(joined, parts)
    one = gradients(trainer(tmp_path, recipe), [[n for part in parts for n in part]])
    assert several.keys() == one.keys()
    for name in one:
        torch.testing.assert_close(several[name], one[name], atol=1e-6, rtol=1e-4, msg=name)
    # So it is for the fewer batches at an epoch's end.
    few = gradients(joined, parts[:2])
    direct = gradients(trainer(tmp_path, recipe), [[n for part in parts[:2] for n in part]])
    for name in one:
        torch.testing.assert_close(few[name], direct[name], atol=1e-6, rtol=1e-4, msg=name)


def test_an_update_counts_as_one_step_of_the_schedule(tmp_path: Path) -> None:
    made = trainer(tmp_path / "run", overrides=("training.accumulate=3", "training.epochs=2"))
    assert len(made.batches) == 16
    assert "6 steps" in made.plan  # 3 + 3 + 2 batches an epoch
    made.train()
    assert made.schedule.last_epoch == 6
    assert made.schedule.get_last_lr() == [0, 0]


def test_checkpoints_count_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def counted(run: Path, step: int, *rest: Any) -> None:
        written.append(step)
        save_checkpoint(run, step, *rest)

    monkeypatch.setattr("spanwise.training.loop.save_checkpoint", counted)
    fit(tmp_path / "run", epochs=2, accumulate=3, checkpoint_steps=2)
    assert written == [6, 8, 11, 16]  # behind updates 2, 3 (an epoch's end), 4 and 6


def test_gradients_are_clipped(tmp_path: Path) -> None:
    def norm(clip: float) -> float:
        found = gradients(trainer(tmp_path, overrides=(f"training.clip={clip}",)), [[0, 1, 2]])
        return float(torch.cat([gradient.flatten() for gradient in found.values()]).norm())

    assert norm(0.01) == pytest.approx(0.01, rel=1e-3)
    assert norm(1000) == pytest.approx(norm(2000))
    assert norm(1000) > 0.1


# --- numbers gone bad -------------------------------------------------------------------------------------------------


def poisoned() -> Corpus:
    """The tiny corpus with one sentence that will have a state that is no number."""
    data = corpus(60)
    bad = Sentence("poison-7", ("oslo", "brings", "plague"), (Entity("Place", ((0, 1),)),))
    return Corpus({**data.splits, "train": (*data["train"][:30], bad, *data["train"][30:])})


def test_a_loss_that_is_no_number_names_its_batch(tmp_path: Path) -> None:
    made = trainer(tmp_path / "run", data=poisoned())
    encoder: Any = made.model.encoder
    with torch.no_grad():
        encoder.words.learned.weight[encoder.vocabulary.word_numbers(["plague"])] = float("nan")
    step = next(n for n, numbers in enumerate(made.batches.batches) if 30 in numbers)
    with pytest.raises(SpanwiseError) as caught:
        made.train()
    message = str(caught.value)
    assert message.startswith(f"the loss of step {step + 1} (epoch 1) is not a number; its batch holds the sentences ")
    assert "poison-7" in message
    assert "training.precision=fp32" in message
    assert "\n" not in message
    assert made.schedule.last_epoch <= step + 1


def test_a_head_that_goes_bad_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer(tmp_path / "run", overrides=("training.epochs=3",))
    loss, calls = type(made.model.head).loss, []

    def failing(self: Head, *arguments: Any) -> Any:
        calls.append(1)
        found = loss(self, *arguments)
        if len(calls) == 12:
            found.sums = found.sums * float("inf")
        return found

    monkeypatch.setattr(type(made.model.head), "loss", failing)
    with pytest.raises(SpanwiseError, match=r"the loss of step 12 \(epoch 2\) is not a number") as caught:
        made.train()
    names = [made.corpus["train"][number].id for number in made.batches.batches[11]]
    assert ", ".join(names) in str(caught.value)


def test_a_gradient_that_is_no_number_names_its_batch(tmp_path: Path) -> None:
    made = trainer(tmp_path / "run")
    calls: list[int] = []
    weight = next(made.model.head.parameters())
    weight.register_hook(lambda gradient: gradient * float("nan") if calls.append(1) or len(calls) == 5 else gradient)  # type: ignore[func-returns-value]
    with pytest.raises(SpanwiseError, match=r"the gradient of step 5 \(epoch 1\) is not a number"):
        made.train()


def test_the_watch_looks_late_but_names_the_right_step() -> None:
    built, train = model("static"), corpus(60)["train"]
    batches = TrainingBatches(
        built.encoder, built.head, train, built.encoder.prepare(train), epochs=2, batch_size=8, budget=None, seed=1
    )
    watch = Watch(batches, train, every=64)
    for step in range(10):
        watch.add(step, torch.tensor(float("nan") if step == 9 else 1.0), torch.tensor(1.0))
    with pytest.raises(SpanwiseError, match=r"the loss of step 10 \(epoch 2\)"):
        watch.look()
    calm = Watch(batches, train, every=4)
    for step in range(10):
        calm.add(step, torch.tensor(1.0), None)
    calm.look()
    assert not calm._recent


# --- what is logged ---------------------------------------------------------------------------------------------------


def test_the_loss_of_an_epoch_is_the_mean_of_its_batches(tmp_path: Path) -> None:
    made = trainer(tmp_path / "run", overrides=("training.epochs=1", "training.head_rate=0"))
    made.train()
    made.model.train()
    with torch.no_grad():
        losses = [float(made.model(batch.inputs, batch.targets)["loss"]) for batch in map(made.batches.batch, range(8))]
    (row,) = (json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    assert row["loss"] == pytest.approx(np.mean(losses), abs=2e-6)


def test_a_bar_on_a_terminal_and_lines_in_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said: list[str] = []
    fit(tmp_path / "log", corpus(), epochs=2, log=said.append)
    assert [line.split(":")[0] for line in said if line.startswith("epoch")] == ["epoch 1", "epoch 2"]

    import io
    import sys

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen, said = Terminal(), []
    monkeypatch.setattr(sys, "stderr", screen)
    fit(tmp_path / "bar", corpus(), epochs=2, log=said.append)
    assert not any(line.startswith("epoch") for line in said)
    assert "epoch 2: loss" in screen.getvalue()


def test_dev_is_read_in_training_as_it_is_read_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = partial(pieces.windows, longest=2, overlap=1)  # so few words are judged at once that it matters
    monkeypatch.setattr(pieces, "windows", few)
    run = fit(tmp_path / "run", corpus(60, dev=40), recipe="spanner")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert max(row["dev"]["f1"] for row in rows) == pytest.approx(run.scores["dev"]["micro"]["f1"], abs=1e-6)
    assert 0 < run.scores["dev"]["micro"]["f1"] < 1
