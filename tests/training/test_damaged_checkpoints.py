"""Checkpoints carry checksums: a damaged one is detected, and the previous one is used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from interruptions import Interrupted, interrupt
from tiny import digest, fit

from spanwise import SpanwiseError
from spanwise.runs.folder import RunFolder
from spanwise.training.steps import TrainingSteps

OPTIONS = {"epochs": 2, "checkpoint_steps": 2}
FILES = ("state.json", "model.safetensors", "optimizer.safetensors", "random.safetensors", "checksums.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    fit(folder, **OPTIONS)
    return folder


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that was interrupted in its second epoch."""
    folder = tmp_path_factory.mktemp("unfinished") / "run"
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, TrainingSteps, "_backward", 12)
        with pytest.raises(Interrupted):
            fit(folder, **OPTIONS)
    return folder


@pytest.fixture
def unfinished(interrupted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(interrupted, tmp_path / "run"))


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_the_newest_two_checkpoints_are_kept(unfinished: Path) -> None:
    assert sorted(path.name for path in (unfinished / "checkpoints").iterdir()) == ["step-10", "step-8"]


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_detected_and_the_previous_checkpoint_used(unfinished: Path, whole: Path, name: str) -> None:
    lines: list[str] = []
    newest = RunFolder(unfinished).checkpoint_folders()[-1]
    flip_bit(newest / name)
    fit(unfinished, resume=True, log=lines.append, **OPTIONS)
    named = name if name != "checksums.json" else "optimizer.safetensors"  # the file whose checksum was damaged
    assert f"note: {newest} is damaged ({named}); using the checkpoint before it" in lines
    assert "resuming after step 8 (epoch 2)" in lines
    assert digest(unfinished) == digest(whole)
    assert {path.name for path in unfinished.iterdir()} == {path.name for path in whole.iterdir()}


def test_a_cut_or_missing_file_is_detected(unfinished: Path, whole: Path) -> None:
    newest = RunFolder(unfinished).checkpoint_folders()[-1]
    for name in FILES:
        copy = Path(shutil.copytree(unfinished, unfinished.parent / name))
        path = copy / "checkpoints" / newest.name / name
        path.write_bytes(path.read_bytes()[:-1])
        lines: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            interrupt(patch, TrainingSteps, "_backward", 1)
            with pytest.raises(Interrupted):
                fit(copy, resume=True, log=lines.append, **OPTIONS)
        assert "resuming after step 8 (epoch 2)" in lines
        shutil.rmtree(copy)
    (newest / "model.safetensors").unlink()
    fit(unfinished, resume=True, **OPTIONS)
    assert digest(unfinished) == digest(whole)


def test_without_an_intact_checkpoint_resuming_is_refused(unfinished: Path, whole: Path) -> None:
    for folder in RunFolder(unfinished).checkpoint_folders():
        flip_bit(folder / "model.safetensors")
    with pytest.raises(SpanwiseError) as caught:
        fit(unfinished, resume=True, **OPTIONS)
    checkpoints = unfinished / "checkpoints"
    damaged = "step-10 (model.safetensors), step-8 (model.safetensors)"
    advice = "delete this folder to train from the beginning"
    assert str(caught.value) == f"{checkpoints}: all checkpoints are damaged: {damaged}; {advice}"
    shutil.rmtree(checkpoints)
    fit(unfinished, resume=True, **OPTIONS)
    assert digest(unfinished) == digest(whole)


def test_the_previous_checkpoint_stays_until_the_new_one_is_complete(unfinished: Path) -> None:
    before = {path.name for path in (unfinished / "checkpoints").iterdir()}
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, Path, "replace", 1)  # the rename of the next checkpoint
        with pytest.raises(Interrupted):
            fit(unfinished, resume=True, **OPTIONS)
    assert "step-10" in before & {path.name for path in (unfinished / "checkpoints").iterdir()}
