"""A training that is interrupted and resumed ends with identical weights, metrics and scores."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from interruptions import Interrupted, interrupt
from tiny import corpus, digest, fit

from spanwise import Corpus, SpanwiseError, SpanwiseWarning
from spanwise.files import disk
from spanwise.models.model import Model
from spanwise.training import checkpoint, loop
from spanwise.training.loop import Trainer
from spanwise.training.steps import TrainingSteps
from spanwise.training.writer import Writer

SAMPLED = ("head.negatives=6",)  # fewer than all
VECTORS = ("encoder.glove.iterations=2", "head.hidden=8")
VARIANTS: dict[str, dict[str, Any]] = {
    "tags": {"epochs": 3},
    "spans, checkpoints between epochs": {"recipe": "spanner", "epochs": 2, "checkpoint_steps": 2, "overrides": SAMPLED},
    "accumulated batches": {"recipe": "seqner-crf", "epochs": 3, "accumulate": 3, "checkpoint_steps": 1},
    "bundle": {"recipe": "bl-spanner", "epochs": 4, "checkpoint_steps": 3, "overrides": ("head.span.negatives=6",)},
    "given spans": {"recipe": "sng", "task": "typing", "epochs": 4, "checkpoint_steps": 3, "overrides": VECTORS},
    "recurrent spans": {"recipe": "sng", "epochs": 2, "checkpoint_steps": 5, "overrides": (*VECTORS, *SAMPLED)},
    "stopping early": {"epochs": 8, "patience": 1, "checkpoint_steps": 3},
    "adversarial": {"epochs": 2, "adversarial": 0.5, "checkpoint_steps": 3},
    "adversarial, accumulated": {"epochs": 3, "adversarial": 0.5, "accumulate": 3, "checkpoint_steps": 1},
    "token budget": {"recipe": "spanner", "epochs": 2, "token_budget": 60, "checkpoint_steps": 4, "overrides": SAMPLED},
}


def run_to_end(folder: Path, interruptions: list[Callable[[pytest.MonkeyPatch], None]], **options: Any) -> int:
    """Train with interruptions until it is finished; return how often it was interrupted."""
    count = 0
    for number, set_up in enumerate(interruptions):
        with pytest.MonkeyPatch.context() as patch:
            set_up(patch)
            try:
                fit(folder, resume=number > 0, **options)
            except Interrupted:
                count += 1
            else:
                return count
    fit(folder, resume=True, **options)
    return count


@pytest.mark.parametrize("name", VARIANTS)
def test_interrupted_between_steps(tmp_path: Path, name: str) -> None:
    options = VARIANTS[name]
    fit(tmp_path / "whole", **options)
    choose = random.Random(name)
    moments = [choose.randint(1, 14) for _ in range(3)]
    interruptions = [lambda patch, n=n: interrupt(patch, TrainingSteps, "_backward", n) for n in moments]
    assert run_to_end(tmp_path / "parts", interruptions, **options) >= 2
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")
    assert sorted(p.name for p in (tmp_path / "parts").iterdir()) == sorted(p.name for p in (tmp_path / "whole").iterdir())


def test_a_transformer_with_dropout_resumes_identically(tiny_bert: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"encoder": str(tiny_bert), "epochs": 2, "checkpoint_steps": 2, "recipe": "spanner"}
    options |= {"data": corpus(), "encoder_rate": 1e-3, "overrides": SAMPLED}
    fit(tmp_path / "whole", **options)
    interruptions = [lambda patch, n=n: interrupt(patch, TrainingSteps, "_backward", n) for n in (2, 4)]
    assert run_to_end(tmp_path / "parts", interruptions, **options) == 2
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_the_recipe_spanwise_resumes_identically(tiny_bert: Path, tmp_path: Path) -> None:
    """Masking, dropout, sampling and the adversarial pass all draw random numbers."""
    options: dict[str, Any] = {"encoder": str(tiny_bert), "epochs": 2, "checkpoint_steps": 2, "recipe": "spanwise"}
    options |= {"data": corpus(), "encoder_rate": 1e-3, "overrides": ("head.sampling=0.5",)}
    fit(tmp_path / "whole", **options)
    interruptions = [lambda patch, n=n: interrupt(patch, TrainingSteps, "_backward", n) for n in (4, 6)]
    assert run_to_end(tmp_path / "parts", interruptions, **options) == 2
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_interrupted_while_files_are_written(tmp_path: Path) -> None:
    options: dict[str, Any] = {"epochs": 2, "recipe": "spanner", "checkpoint_steps": 3}
    fit(tmp_path / "whole", **options)
    moments: list[tuple[Any, str, int, bool]] = [
        (Model, "save_without_weights", 1, False),
        (Path, "mkdir", 2, True),
        (loop, "save_checkpoint", 1, False),
        (checkpoint, "write_tensors", 1, True),  # weights are written, the optimiser state is not
        (checkpoint, "write_tensors", 3, True),
        (json, "dumps", 30, False),
        (disk, "flush", 2, False),
        (checkpoint, "_checksum", 2, False),
        (checkpoint, "_remove", 1, False),  # renamed, before the old one is removed
        (checkpoint.shutil, "rmtree", 4, False),
        (checkpoint.shutil, "rmtree", 4, True),
        (Trainer, "_record_score", 1, True),
        (Model, "save_weights", 1, True),
        (loop, "atomic_output", 1, True),
        (Trainer, "_save", 2, False),
    ]
    interruptions = [lambda patch, moment=moment: interrupt(patch, *moment[:3], done=moment[3]) for moment in moments]
    assert run_to_end(tmp_path / "parts", interruptions, **options) >= 8
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_interrupted_while_files_are_written_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"epochs": 2, "recipe": "spanner", "checkpoint_steps": 3}
    fit(tmp_path / "whole", **options)
    # as on a GPU, whose weights are copied to the CPU
    monkeypatch.setattr(loop, "Writer", lambda in_background: Writer(in_background=True))
    for module, name in ((loop, "state_tensors"), (checkpoint, "_optimizer_tensors")):
        copied = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda source, copied=copied: {name: value.clone() for name, value in copied(source).items()}
        )
    interruptions = [lambda patch, n=n: interrupt(patch, loop, "save_checkpoint", n) for n in (1, 2, 3)]
    assert run_to_end(tmp_path / "parts", interruptions, **options) == 3
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


@pytest.mark.parametrize("after", range(1, 7))  # record, configuration, labels, weights, metrics, report
def test_interrupted_at_every_file_of_the_run_folder(tmp_path: Path, after: int) -> None:
    options: dict[str, Any] = {"epochs": 1, "data": corpus(), "checkpoint_steps": 1}
    whole = tmp_path / "whole"
    fit(whole, **options)

    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, Path, "replace", after)  # the last step of every atomic write
        with pytest.raises(Interrupted):
            fit(tmp_path / "parts", **options)
    fit(tmp_path / "parts", resume=True, **options)
    assert digest(tmp_path / "parts") == digest(whole)
    assert sorted(p.name for p in (tmp_path / "parts").iterdir()) == sorted(p.name for p in whole.iterdir())


# --- refused changes, and leftovers ----------------------------------------------------


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """A training that was interrupted in its second epoch."""
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, TrainingSteps, "_backward", 12)
        with pytest.raises(Interrupted):
            fit(folder, epochs=2, checkpoint_steps=2)
    return folder


def refused(folder: Path, **options: Any) -> str:
    with pytest.raises(SpanwiseError) as caught:
        fit(folder, **{"epochs": 2, "checkpoint_steps": 2, "resume": True, **options})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_changed_settings_are_named(unfinished: Path) -> None:
    message = refused(unfinished, epochs=3, seed=5, recipe="seqner-crf")
    names = "head.tagging, recipe, title, training.epochs, training.seed"
    assert message == f"{unfinished}: cannot resume with changed settings: {names}"
    assert refused(unfinished, overrides=["encoder.hidden=20"]).endswith("changed settings: encoder.hidden")
    assert refused(unfinished, patience=3).endswith("changed settings: training.patience")


def test_changed_data_is_refused(unfinished: Path) -> None:
    data = corpus(60)
    shorter = Corpus({**data.splits, "dev": data["dev"][1:]})
    assert (
        refused(unfinished, data=shorter) == f"{unfinished}: cannot resume: the dev data has changed since the run was started"
    )
    other = Corpus({**data.splits, "train": (*data["train"][:-1], replace(data["train"][-1], entities=()))})
    assert (
        refused(unfinished, data=other) == f"{unfinished}: cannot resume: the train data has changed since the run was started"
    )


def test_an_unfinished_run_is_not_overwritten(unfinished: Path) -> None:
    assert "contains an unfinished run; pass --resume to continue it" in refused(unfinished, resume=False)
    assert (unfinished / "checkpoints").is_dir()


def test_leftovers_of_killed_writes_are_removed(unfinished: Path, tmp_path: Path) -> None:
    fit(tmp_path / "whole", epochs=2, checkpoint_steps=2)
    newest = unfinished / "checkpoints" / "step-10"
    shutil.copytree(newest, unfinished / "checkpoints" / ".step-12.12345678" / "step-12")  # not yet renamed
    (unfinished / "checkpoints" / ".step-6").mkdir()  # partly removed
    with pytest.warns(SpanwiseWarning, match="training is unfinished"):
        built = Model.load(unfinished)
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, Path, "replace", 1)
        patch.setattr(shutil, "rmtree", lambda *arguments, **options: None)  # as after a kill, nothing is cleaned up
        with pytest.raises(Interrupted):
            built.save_weights(unfinished)
    assert list(unfinished.glob(".model.safetensors.*/model.safetensors"))
    (unfinished / ".notes").mkdir()  # a user's own folder
    fit(unfinished, epochs=2, checkpoint_steps=2, resume=True)
    assert digest(unfinished) == digest(tmp_path / "whole")
    assert {path.name for path in unfinished.iterdir()} == {".notes", *(path.name for path in (tmp_path / "whole").iterdir())}


def test_without_a_checkpoint_training_starts_from_the_beginning(tmp_path: Path) -> None:
    lines: list[str] = []
    fit(tmp_path / "new", epochs=1, resume=True, log=lines.append)
    fit(tmp_path / "whole", epochs=1)
    assert f"nothing to resume in {tmp_path / 'new'}: training from the start" in lines
    assert digest(tmp_path / "new") == digest(tmp_path / "whole")


def test_a_resumed_training_does_not_need_its_initial_model(tmp_path: Path) -> None:
    fit(tmp_path / "first", epochs=1)
    fit(tmp_path / "whole", epochs=2, seed=3, init=tmp_path / "first")
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, TrainingSteps, "_backward", 12)
        with pytest.raises(Interrupted):
            fit(tmp_path / "parts", epochs=2, seed=3, init=tmp_path / "first")
    shutil.rmtree(tmp_path / "first")
    fit(tmp_path / "parts", epochs=2, seed=3, init=tmp_path / "first", resume=True)
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")
