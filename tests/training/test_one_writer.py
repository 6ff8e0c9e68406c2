"""A run folder, or a folder of several runs, has one writer."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from interruptions import Interrupted, interrupt
from tiny import STATIC, corpus, digest, fit, quiet

from spanwise import SpanwiseError
from spanwise.files import locks
from spanwise.files.writing import atomic_output
from spanwise.recipes.resolve import Choices
from spanwise.runs.folder import RunFolder, RunState
from spanwise.training.loop import Trainer
from spanwise.training.run import RunOptions
from spanwise.training.seeds import train_seeds
from spanwise.training.steps import TrainingSteps


def train_two_seeds(out: Path, *, resume: bool = False) -> dict[str, Any]:
    choices = Choices("seqner", "static", None, STATIC, {"epochs": 1, "batch_size": 8})
    return train_seeds(corpus(30), out, [1, 2], choices, RunOptions(device="cpu", resume=resume, log=quiet))


def during_training(monkeypatch: pytest.MonkeyPatch, action: Any) -> list[str]:
    """Run ``action`` once, in the middle of a training; return the error it raised."""
    errors: list[str] = []
    backward = TrainingSteps._backward

    def acting(*arguments: Any, **options: Any) -> Any:
        if not errors:
            errors.append("")
            with pytest.raises(SpanwiseError) as caught:
                action()
            errors[0] = str(caught.value)
        return backward(*arguments, **options)

    monkeypatch.setattr(TrainingSteps, "_backward", acting)
    return errors


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_training_into_a_run_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: bool
) -> None:  # fmt: skip
    fit(tmp_path / "alone", epochs=1)
    errors = during_training(monkeypatch, lambda: fit(tmp_path / "run", epochs=1, seed=9, resume=resume))
    fit(tmp_path / "run", epochs=1)
    holder = f"process {os.getpid()}"
    assert errors == [f"{tmp_path / 'run'}: {holder} is training in this folder; wait for it, or choose another folder"]
    assert digest(tmp_path / "run") == digest(tmp_path / "alone")
    assert {path.name for path in (tmp_path / "run").iterdir()} == {path.name for path in (tmp_path / "alone").iterdir()}


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_group_of_runs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: bool) -> None:
    errors = during_training(monkeypatch, lambda: train_two_seeds(tmp_path / "runs", resume=resume))
    train_two_seeds(tmp_path / "runs")
    assert f"process {os.getpid()} is training in this folder" in errors[0]
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["runs.json", "seed-1", "seed-2", "seeds.json"]


def _wait_in_training(out: Path, ready: Any) -> None:
    def waiting(*arguments: Any, **options: Any) -> Any:
        ready.set()
        signal.pause()

    TrainingSteps._backward = waiting  # type: ignore[method-assign]
    fit(out, epochs=1)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The folder of a training that was killed at its first step."""
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=_wait_in_training, args=(tmp_path / "run", ready))
    process.start()
    assert ready.wait(60)
    with pytest.raises(SpanwiseError, match=f"process {process.pid} is training in this folder"):
        fit(tmp_path / "run", epochs=1, resume=True)
    process.kill()
    process.join()
    return tmp_path / "run"


def test_the_lock_of_a_killed_training_is_released(killed: Path, tmp_path: Path) -> None:
    fit(killed, epochs=1, resume=True)
    fit(tmp_path / "whole", epochs=1)
    assert digest(killed) == digest(tmp_path / "whole")
    assert {path.name for path in killed.iterdir()} == {path.name for path in (tmp_path / "whole").iterdir()}


def test_a_lock_file_does_not_make_an_empty_folder_not_empty(tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / ".lock").write_text("1 elsewhere\n")  # of a killed process
    assert RunFolder(out).state is RunState.EMPTY
    with atomic_output(out, is_folder=True) as temporary:
        (temporary / "a").write_text("x")
    assert [path.name for path in out.iterdir()] == ["a"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".lock").write_text("")
    fit(tmp_path / "other", epochs=1)
    assert not (tmp_path / "other" / ".lock").exists()


def test_a_refused_or_failed_training_leaves_no_lock_file(tmp_path: Path) -> None:
    with pytest.raises(SpanwiseError):
        fit(tmp_path / "new" / "run", recipe="seqner", data=corpus(30), overrides=("head.tagging=nonsense",))
    assert not (tmp_path / "new").exists()
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, TrainingSteps, "_backward", 2)
        with pytest.raises(Interrupted):
            fit(tmp_path / "run", epochs=1)
    assert not (tmp_path / "run" / ".lock").exists()


def test_without_locks_a_training_works_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    lines: list[str] = []
    fit(tmp_path / "run", epochs=1, log=lines.append)
    assert f"note: {tmp_path / 'run'} cannot be locked on this system; make sure that no other process trains in it" in lines
    assert RunFolder(tmp_path / "run").is_finished


def test_the_lock_file_belongs_to_the_run_folder(tmp_path: Path) -> None:
    fit(tmp_path / "run", epochs=1)
    assert RunFolder(tmp_path / "run").owns(tmp_path / "run" / ".lock")


def test_leftovers_of_a_run_killed_after_its_report_are_removed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, Trainer, "finish", 1)
        with pytest.raises(Interrupted):
            fit(out, epochs=1)
    assert {"resume.json", "checkpoints", "run.json"} <= {path.name for path in out.iterdir()}
    (out / ".run.json.12345678").mkdir()
    (out / ".lock").write_text("")
    with pytest.raises(SpanwiseError, match="there is nothing to resume"):
        fit(out, epochs=1, resume=True)
    fit(tmp_path / "whole", epochs=1)
    assert {path.name for path in out.iterdir()} == {path.name for path in (tmp_path / "whole").iterdir()}
