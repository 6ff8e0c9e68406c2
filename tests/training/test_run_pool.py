"""Runs of a group that are trained at the same time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tiny import STATIC, corpus, digest, quiet

from spanwise import Corpus, SpanwiseError
from spanwise.cli import main
from spanwise.config.settings import Config
from spanwise.recipes.resolve import Choices
from spanwise.runs.folder import RunFolder
from spanwise.runtime import progress
from spanwise.runtime.device import visible_gpus
from spanwise.runtime.processes import STOP_SECONDS
from spanwise.training import run_pool
from spanwise.training.run import RunOptions
from spanwise.training.run_pool import PlannedRun, RunPool
from spanwise.training.seeds import train_seeds

CHOICES = Choices("seqner", "static", overrides=STATIC, settings={"epochs": 1, "batch_size": 8})


def test_runs_give_the_same_models_as_one_after_another(tmp_path: Path) -> None:
    lines: list[str] = []
    expected = train_seeds(corpus(), tmp_path / "one", [1, 2, 3], CHOICES, RunOptions("cpu", log=quiet))
    actual = train_seeds(corpus(), tmp_path / "two", [1, 2, 3], CHOICES, RunOptions("cpu", log=lines.append, jobs=2))
    assert actual == expected
    for seed in ("seed-1", "seed-2", "seed-3"):
        assert digest(tmp_path / "one" / seed) == digest(tmp_path / "two" / seed)
        assert f"{seed}: started" in lines
        assert any(line.startswith(f"{seed}: epoch 1: loss") for line in lines)
    # Finished runs are not trained again.
    lines.clear()
    options = RunOptions("cpu", log=lines.append, jobs=2, resume=True)
    assert train_seeds(corpus(), tmp_path / "two", [1, 2, 3], CHOICES, options) == expected
    assert not any("started" in line for line in lines)


def test_several_jobs_need_several_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", str(tmp_path), "--jobs", "2", "--out", str(tmp_path / "run")])
    assert "--jobs trains several runs at a time; it needs --seeds, --folds or --sweep" in capfd.readouterr().err


def train_by_name(data: Corpus, out: Path, config: Config, options: RunOptions) -> None:
    """In place of a training: the name of the run says what happens."""
    time.sleep(0.05)
    if out.name == "bad":
        raise SpanwiseError("bad data")
    if out.name == "worse":
        time.sleep(0.5)
        raise SpanwiseError("worse data")
    if out.name == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if out.name == "slow":
        time.sleep(0.5)
    if out.name == "endless":
        options.log("training")
        time.sleep(60)
    bars = "bars" if progress._has_bars else "no bars"
    options.log(f"GPU {os.environ.get('CUDA_VISIBLE_DEVICES')}, {torch.get_num_threads()} threads, {bars}")
    out.with_suffix(".done").touch()


Train = Callable[..., list[str]]


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """Train runs with the given names in forks, which see replaced functions; return the log."""
    monkeypatch.setattr(run_pool, "process_context", lambda modules: multiprocessing.get_context("fork"))
    monkeypatch.setattr(run_pool, "train_config", train_by_name)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    monkeypatch.setattr("spanwise.runtime.threads.use_threads", lambda count: setattr(torch, "get_num_threads", lambda: count))

    def train_names(*names: str, jobs: int = 2, log: Callable[[str], None] | None = None) -> list[str]:
        lines: list[str] = []
        config = CHOICES.resolve()
        runs = [PlannedRun(RunFolder(tmp_path / name), corpus(), config, RunOptions()) for name in names]
        try:
            RunPool(jobs, "cpu", log or lines.append).train(runs)
        finally:
            assert not multiprocessing.active_children()
        return lines

    return train_names


def test_processes_share_the_threads(train: Train, tmp_path: Path) -> None:
    lines = train("a", "b", "c", "d", jobs=3)
    assert sorted(line for line in lines if "threads" in line) == [f"{name}: GPU None, 2 threads, no bars" for name in "abcd"]
    assert len(list(tmp_path.glob("*.done"))) == 4


def test_each_process_uses_one_gpu(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_pool, "should_use_cuda", lambda device: True)
    monkeypatch.setattr(run_pool, "visible_gpus", lambda: ["4", "7"])
    lines = train("slow", "b", "c", jobs=2)
    assert [line for line in lines if "started" in line] == [
        "slow: started on GPU 4", "b: started on GPU 7", "c: started on GPU 7",
    ]  # fmt: skip
    assert "c: GPU 7, 3 threads, no bars" in lines


def test_the_names_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-5a")
    assert visible_gpus() == ["3", "GPU-5a"]


def test_after_a_failure_started_runs_are_finished_and_no_other_is_started(train: Train, tmp_path: Path) -> None:
    lines: list[str] = []
    with pytest.raises(SpanwiseError, match=r"^bad: bad data$"):
        train("bad", "slow", "never", log=lines.append)
    assert "bad: bad data; no other run is started, and slow will be finished" in lines
    assert [path.name for path in tmp_path.glob("*.done")] == ["slow.done"]


def test_all_failures_are_reported(train: Train) -> None:
    lines: list[str] = []
    with pytest.raises(SpanwiseError, match=r"^bad: bad data; worse: worse data$"):
        train("bad", "worse", log=lines.append)
    assert "bad: bad data; no other run is started, and worse will be finished" in lines


def test_a_killed_process_is_an_error(train: Train) -> None:
    with pytest.raises(
        SpanwiseError, match=r"^killed: its process was ended by signal 9 \(SIGKILL\); if memory is short, pass"
    ):
        train("killed", "a")


def test_an_interrupt_ends_all_processes(train: Train) -> None:
    """The fixture checks that no process is left."""

    def interrupt(line: str) -> None:
        if line.endswith("training"):
            raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        train("endless", "endless", log=interrupt)
    assert time.monotonic() - started < STOP_SECONDS  # they end without being killed


def test_a_process_ends_with_its_parent(train: Train, tmp_path: Path) -> None:
    """A killed parent closes its end of the pipe, and nobody would receive the progress."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    run = PlannedRun(RunFolder(tmp_path / "endless"), corpus(), CHOICES.resolve(), RunOptions())

    def target() -> None:
        here.close()  # of the parent; a fork has inherited it
        run_pool.train_in_process(there, run, 1, None)

    process = context.Process(target=target)
    process.start()
    there.close()
    assert here.recv() == "training"
    here.close()
    process.join(30)
    assert process.exitcode == 128 + signal.SIGTERM
