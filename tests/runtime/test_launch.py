"""Processes that ``accelerate launch --cpu`` prepares and does not start."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from spanwise.cli import main
from spanwise.core.errors import SpanwiseError
from spanwise.runtime import launch

SEVERAL = {"ACCELERATE_USE_CPU": "True", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands that replaced this process."""
    commands: list[tuple[str, ...]] = []
    for name in (*SEVERAL, "RANK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "execv", lambda path, arguments: commands.append(arguments))
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "spanwise", "train", "data"])
    monkeypatch.setattr(launch, "_launcher_arguments", lambda: ["accelerate", "launch", "--cpu", "--num_processes=2"])
    return commands


def set_environment(monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    for name, value in {**SEVERAL, **more}.items():
        monkeypatch.setenv(name, value)


def test_all_processes_are_started(started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)
    launch.start_missing_processes()
    (command,) = started
    assert command[1:5] == ("-m", "torch.distributed.run", "--nproc-per-node", "2")
    assert command[-4:] == ("-m", "spanwise", "train", "data")


@pytest.mark.parametrize("words", [("train", "missing"), ("distill", "missing", "missing")])
def test_both_commands_that_train_start_them(
    started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    set_environment(monkeypatch)
    with pytest.raises(SystemExit):
        main([*words, "--out", str(tmp_path / "run")])
    assert len(started) == 1


def test_other_processes_are_left_alone(started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    launch.start_missing_processes()  # not started by Accelerate
    set_environment(monkeypatch, RANK="0")
    launch.start_missing_processes()  # already one of several
    monkeypatch.delenv("RANK")
    monkeypatch.setattr(launch, "_launcher_arguments", lambda: ["accelerate", "launch", "--num_processes", "1"])
    launch.start_missing_processes()
    assert not started


def test_an_unknown_number_is_an_error(started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch)
    monkeypatch.setattr(launch, "_launcher_arguments", lambda: ["accelerate", "launch", "--config_file", "x.yaml"])
    with pytest.raises(SpanwiseError, match="has started one process instead of several; start them with torchrun"):
        launch.start_missing_processes()
