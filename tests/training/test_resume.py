"""A training that is interrupted and resumed ends as if nothing had happened, bit for bit."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import corpus, digest, fit

from spanwise import Corpus, SpanwiseError, SpanwiseWarning
from spanwise.models.model import Model
from spanwise.training import checkpoint, loop
from spanwise.training.loop import Trainer

SAMPLED = ("head.negatives=6",)  # fewer than there are
VECTORS = ("encoder.glove.iterations=2", "head.hidden=8")
VARIANTS: dict[str, dict[str, Any]] = {
    "tags": {"epochs": 3},
    "spans and checkpoints between": {"recipe": "spanner", "epochs": 2, "checkpoint_steps": 2, "overrides": SAMPLED},
    "joined batches": {"recipe": "seqner-crf", "epochs": 3, "accumulate": 3, "checkpoint_steps": 1},
    "a bundle": {"recipe": "bl-spanner", "epochs": 4, "checkpoint_steps": 3, "overrides": ("head.span.negatives=6",)},
    "given spans": {"recipe": "sng", "task": "typing", "epochs": 4, "checkpoint_steps": 3, "overrides": VECTORS},
    "spans read word by word": {"recipe": "sng", "epochs": 2, "checkpoint_steps": 5, "overrides": (*VECTORS, *SAMPLED)},
    "stopping early": {"epochs": 8, "patience": 1, "checkpoint_steps": 3},
    "token budget": {"recipe": "spanner", "epochs": 2, "token_budget": 60, "checkpoint_steps": 4, "overrides": SAMPLED},
}


class Interrupted(BaseException):
    """Like a kill: nothing catches it."""


def interrupt(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, after: int, *, done: bool = False) -> None:
    """Make the call number ``after`` of a function the last, before it begins or, with ``done``, when it has ended."""
    function, calls = getattr(owner, name), []

    def failing(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == after and not done:
            raise Interrupted
        result = function(*arguments, **options)
        if len(calls) == after:
            raise Interrupted
        return result

    monkeypatch.setattr(owner, name, failing)


def run_to_end(folder: Path, interruptions: list[Callable[[pytest.MonkeyPatch], None]], **options: Any) -> int:
    """Train, interrupted again and again, until it is finished; how often it was really interrupted."""
    count = 0
    for number, arrange in enumerate(interruptions):
        with pytest.MonkeyPatch.context() as patch:
            arrange(patch)
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
    arranged = [lambda patch, n=n: interrupt(patch, Trainer, "_backward", n) for n in moments]
    assert run_to_end(tmp_path / "parts", arranged, **options) >= 2
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")
    assert sorted(p.name for p in (tmp_path / "parts").iterdir()) == sorted(p.name for p in (tmp_path / "whole").iterdir())


def test_a_transformer_with_dropout_goes_on_as_it_was(tiny_bert: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"encoder": str(tiny_bert), "epochs": 2, "checkpoint_steps": 2, "recipe": "spanner"}
    options |= {"data": corpus(), "encoder_rate": 1e-3, "overrides": SAMPLED}
    fit(tmp_path / "whole", **options)
    arranged = [lambda patch, n=n: interrupt(patch, Trainer, "_backward", n) for n in (2, 4)]
    assert run_to_end(tmp_path / "parts", arranged, **options) == 2
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


def test_interrupted_while_something_is_written(tmp_path: Path) -> None:
    options: dict[str, Any] = {"epochs": 2, "recipe": "spanner", "checkpoint_steps": 3}
    fit(tmp_path / "whole", **options)
    moments: list[tuple[Any, str, int, bool]] = [
        (Model, "save_frame", 1, False),
        (Path, "mkdir", 2, True),
        (loop, "save_checkpoint", 1, False),
        (checkpoint, "write_tensors", 1, True),  # weights are there, the optimiser is not
        (checkpoint, "write_tensors", 3, True),
        (json, "dumps", 30, False),
        (checkpoint, "_flush", 2, False),
        (checkpoint, "_flush", 6, True),  # renamed, the older one still there
        (checkpoint.shutil, "rmtree", 4, False),
        (checkpoint.shutil, "rmtree", 4, True),
        (Trainer, "_compare", 1, True),
        (Model, "save_weights", 1, True),
        (loop, "replacing", 1, True),
        (Trainer, "_checkpoint", 2, False),
    ]
    arranged = [lambda patch, moment=moment: interrupt(patch, *moment[:3], done=moment[3]) for moment in moments]
    assert run_to_end(tmp_path / "parts", arranged, **options) >= 8
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


@pytest.mark.parametrize("after", range(1, 7))  # what it began with, settings, labels, weights, metrics, report
def test_interrupted_at_every_file_of_the_run_folder(tmp_path: Path, after: int) -> None:
    options: dict[str, Any] = {"epochs": 1, "data": corpus(), "checkpoint_steps": 1}
    whole = tmp_path / "whole"
    fit(whole, **options)

    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, Path, "replace", after)  # the last act of every file that appears whole
        with pytest.raises(Interrupted):
            fit(tmp_path / "parts", **options)
    fit(tmp_path / "parts", resume=True, **options)
    assert digest(tmp_path / "parts") == digest(whole)
    assert sorted(p.name for p in (tmp_path / "parts").iterdir()) == sorted(p.name for p in whole.iterdir())


# --- what a resumed training refuses, and what does not disturb it ----------------------------------------------------


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A training that was interrupted in its second epoch."""
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, Trainer, "_backward", 12)
        with pytest.raises(Interrupted):
            fit(folder, epochs=2, checkpoint_steps=2)
    return folder


def refused(folder: Path, **options: Any) -> str:
    with pytest.raises(SpanwiseError) as caught:
        fit(folder, **{"epochs": 2, "checkpoint_steps": 2, "resume": True, **options})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_other_settings_are_named(begun: Path) -> None:
    message = refused(begun, epochs=3, seed=5, recipe="seqner-crf")
    names = "head.tagging, recipe, title, training.epochs, training.seed"
    assert message == f"{begun}: cannot resume with other settings than it began with: {names}"
    assert refused(begun, overrides=["encoder.hidden=20"]).endswith("began with: encoder.hidden")
    assert refused(begun, patience=3).endswith("began with: training.patience")


def test_other_data_is_noticed(begun: Path) -> None:
    data = corpus(60)
    shorter = Corpus({**data.splits, "dev": data["dev"][1:]})
    assert refused(begun, data=shorter) == f"{begun}: cannot resume, for the dev data is not what it began with"
    other = Corpus({**data.splits, "train": (*data["train"][:-1], replace(data["train"][-1], entities=()))})
    assert refused(begun, data=other) == f"{begun}: cannot resume, for the train data is not what it began with"


def test_an_unfinished_run_is_not_begun_anew(begun: Path) -> None:
    assert "holds an unfinished training; --resume goes on with it" in refused(begun, resume=False)
    assert (begun / "checkpoints").is_dir()


def test_a_broken_checkpoint_is_said(begun: Path) -> None:
    (folder,) = (begun / "checkpoints").iterdir()
    for name in ("state.json", "model.safetensors", "optimizer.safetensors", "random.safetensors"):
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes(kept[: len(kept) // 2])
        assert str(folder / name) in refused(begun)
        (folder / name).unlink()
        assert str(folder / name) in refused(begun)
        (folder / name).write_bytes(kept)
    fit(begun, epochs=2, checkpoint_steps=2, resume=True)


def test_leftovers_of_killed_writes_do_not_disturb(begun: Path, tmp_path: Path) -> None:
    fit(tmp_path / "whole", epochs=2, checkpoint_steps=2)
    (newest,) = (begun / "checkpoints").iterdir()
    shutil.copytree(newest, begun / "checkpoints" / ".step-99")  # not renamed yet
    (begun / "checkpoints" / "step-1").mkdir()  # half removed
    (begun / "checkpoints" / "step-1" / "state.json").write_text("{")
    with pytest.warns(SpanwiseWarning, match="its training is unfinished"):
        built = Model.load(begun)
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, Path, "replace", 1)
        patch.setattr(shutil, "rmtree", lambda *arguments, **options: None)  # killed, nobody tidies up
        with pytest.raises(Interrupted):
            built.save_weights(begun)
    assert list(begun.glob(".model.safetensors.*/model.safetensors"))
    (begun / ".notes").mkdir()  # a user's own, and none of our business
    fit(begun, epochs=2, checkpoint_steps=2, resume=True)
    assert digest(begun) == digest(tmp_path / "whole")
    assert {path.name for path in begun.iterdir()} == {".notes", *(path.name for path in (tmp_path / "whole").iterdir())}


def test_only_the_newest_checkpoint_is_kept(begun: Path) -> None:
    assert [path.name for path in (begun / "checkpoints").iterdir()] == ["step-10"]


def test_without_a_checkpoint_it_starts_at_the_beginning(tmp_path: Path) -> None:
    said: list[str] = []
    fit(tmp_path / "new", epochs=1, resume=True, log=said.append)
    fit(tmp_path / "whole", epochs=1)
    assert f"nothing to resume in {tmp_path / 'new'}: training from the start" in said
    assert digest(tmp_path / "new") == digest(tmp_path / "whole")


def test_a_training_begun_from_another_goes_on_without_it(tmp_path: Path) -> None:
    fit(tmp_path / "first", epochs=1)
    fit(tmp_path / "whole", epochs=2, seed=3, init=tmp_path / "first")
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, Trainer, "_backward", 12)
        with pytest.raises(Interrupted):
            fit(tmp_path / "parts", epochs=2, seed=3, init=tmp_path / "first")
    shutil.rmtree(tmp_path / "first")
    fit(tmp_path / "parts", epochs=2, seed=3, init=tmp_path / "first", resume=True)
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")
