"""The run folder: states and owned files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny import corpus, fit, model

from spanwise.core.errors import SpanwiseError
from spanwise.export.torch_folder import export
from spanwise.runs.folder import RunFolder, RunState
from spanwise.training.loop import Trainer


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    fit(folder, corpus(), epochs=1)
    return folder


def test_states(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def state(path: Path) -> RunState:
        return RunFolder(path).state

    assert state(tmp_path / "missing") == state(tmp_path) == RunState.EMPTY
    assert state(run) is RunState.FINISHED
    assert state(run.parent) is RunState.GROUP
    export(run, tmp_path / "exported")
    assert state(tmp_path / "exported") is RunState.EXPORTED
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("notes")
    assert state(tmp_path / "other") == state(tmp_path / "other" / "notes.txt") == RunState.FOREIGN

    states = []
    train_epoch = Trainer._train_epoch

    def observe(self: Trainer, *arguments: Any) -> Any:
        states.append(self.folder.state)
        return train_epoch(self, *arguments)

    monkeypatch.setattr(Trainer, "_train_epoch", observe)
    fit(tmp_path / "training", corpus(), epochs=2)
    assert states == [RunState.UNFINISHED, RunState.UNFINISHED]
    assert state(tmp_path / "training") is RunState.FINISHED


def test_all_files_of_a_run_are_owned_and_no_others(run: Path, tiny_bert: Path, tiny_roberta: Path, tmp_path: Path) -> None:
    for encoder in (tiny_bert, tiny_roberta):
        model(encoder).save(tmp_path / encoder.name)
    for folder in (run, tmp_path / "bert", tmp_path / "roberta"):
        files = {path for path in folder.rglob("*") if path.is_file()}
        assert set(RunFolder(folder).files()) == files
        assert all(RunFolder(folder).owns(file) for file in files)
        for name in ("mine.txt", "predictions.jsonl", "scores.json", "notes/config.yaml", "model.safetensors.bak", "part.txt"):
            assert not RunFolder(folder).owns(folder / name), name


def test_files_that_do_not_exist_yet_are_owned(run: Path) -> None:
    for name in (
        "resume.json",
        "checkpoints",
        "checkpoints/step-3/state.json",
        "encoder.onnx",
        "vocab.txt",
        "part-0/config.json",
    ):
        assert RunFolder(run).owns(run / name), name


def test_links_are_followed(run: Path, tmp_path: Path) -> None:
    (tmp_path / "soft").symlink_to(run / "model.safetensors")
    (tmp_path / "hard").hardlink_to(run / "model.safetensors")
    (tmp_path / "folder").symlink_to(run)
    for path in ("soft", "hard", "folder/labels.json", run / ".." / "run" / "labels.json"):
        assert RunFolder(run).owns(tmp_path / path), path
    assert RunFolder(tmp_path / "folder").owns(run / "config.yaml")


def test_a_folder_without_a_run_owns_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("a: 1\n")  # of another program
    for name in ("config.yaml", "model.safetensors", "runs.json", "seeds.json"):
        assert not RunFolder(tmp_path).owns(tmp_path / name)


def test_a_group_owns_its_record_and_summary(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "seed-1")
    (tmp_path / "seeds.json").write_text("{}")
    group = RunFolder(tmp_path)
    assert group.state is RunState.GROUP
    assert [folder.path.name for folder in group.runs()] == ["seed-1"]
    assert group.owns(tmp_path / "seeds.json")
    assert group.owns(tmp_path / "runs.json")
    assert not group.owns(tmp_path / "metrics.jsonl")
    assert not group.owns(tmp_path / "seed-1" / "config.yaml")  # the run itself owns it


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [("resume.json", "{", "not valid JSON .*; the file may be truncated"), ("resume.json", "{}", "not a valid training record"),
     ("resume.json", '{"config": 3, "data": {}}', "input should be")],
)  # fmt: skip
def test_broken_records_are_named(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SpanwiseError, match=problem) as caught:
        RunFolder(tmp_path).read_record()
    assert str(tmp_path / name) in str(caught.value)
