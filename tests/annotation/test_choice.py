"""Which engine is chosen, with how many processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanwise.annotation import choice
from spanwise.annotation.engine import Engine, ModelSettings, SingleProcess
from spanwise.annotation.gpu_pool import GpuPool
from spanwise.annotation.job import JobFolder
from spanwise.annotation.pool import ProcessPool
from spanwise.annotation.ray_engine import RayEngine
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import Shard
from spanwise.annotation.sources import Source


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with 8 cores and 16 hardware threads."""
    monkeypatch.setattr(choice, "available_threads", lambda: 8)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(16)), raising=False)
    monkeypatch.setattr("spanwise.annotation.pool.worker_context", lambda model: None)


def choose(tmp_path: Path, shards: int, *, device: str = "cpu", ray: str | None = None, **counts: int) -> Engine:
    source = Source(Path("a.txt"), "a", "text")
    parts = [Shard(source, index, index + 1, f"a-{index}") for index in range(shards)]
    work = ShardWork(JobFolder(tmp_path, ".jsonl"), "jsonl")
    limits: dict[str, int | None] = {"workers": None, "threads": None, **counts}
    settings = ModelSettings(str(tmp_path), device)
    return choice.choose_engine(work, settings, parts, workers=limits["workers"], threads=limits["threads"], ray=ray)


def test_on_a_cpu_the_cores_are_divided_among_the_workers(tmp_path: Path) -> None:
    assert isinstance(choose(tmp_path, 1), SingleProcess)
    for shards, counts, workers, threads in (
        (100, {}, 8, 1),
        (3, {}, 3, 2),
        (100, {"workers": 4}, 4, 2),
        (9, {"threads": 2}, 2, 1),
    ):
        engine = choose(tmp_path, shards, **counts)
        assert isinstance(engine, ProcessPool)
        assert (engine.workers, engine.threads) == (workers, threads)


def test_on_a_gpu_workers_use_all_hardware_threads_but_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_uses_gpu", lambda device: device == "auto")
    for shards, counts, workers in ((100, {}, 15), (100, {"workers": 4}, 4), (2, {}, 2)):
        engine = choose(tmp_path, shards, device="auto", **counts)
        assert isinstance(engine, GpuPool)
        assert engine.workers == workers
    assert choice.choose_precision(None, "auto") == "half"
    assert choice.choose_precision("float32", "auto") == "float32"


def test_ray_is_used_on_request(tmp_path: Path) -> None:
    engine = choose(tmp_path, 100, ray="local", workers=2)
    assert isinstance(engine, RayEngine)
    assert (engine.address, engine.workers, engine.on_gpu) == ("local", 2, False)
