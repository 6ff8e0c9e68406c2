"""Starting worker processes."""

from __future__ import annotations

from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import pytest

from spanwise.annotation.engine import ModelSettings
from spanwise.annotation.gpu_pool import GpuPool, ModelProcess
from spanwise.annotation.job import JobFolder
from spanwise.annotation.pool import ProcessPool, Worker, transformer_modules
from spanwise.annotation.shard_work import ShardWork
from spanwise.annotation.shards import Shard
from spanwise.annotation.sources import Source
from spanwise.core.errors import SpanwiseError


def test_processes_that_cannot_be_started_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line takes an EOFError for an interrupt by the user."""

    class Context:
        @staticmethod
        def Pipe() -> tuple[Path, Path]:  # noqa: N802
            return tmp_path, tmp_path

        class Process:
            def __init__(self, **options: object) -> None: ...

            def start(self) -> None:
                raise EOFError

    monkeypatch.setattr("spanwise.annotation.pool.worker_context", lambda model: Context)
    work, settings = ShardWork(JobFolder(tmp_path, ".jsonl"), "jsonl"), ModelSettings("model")
    with pytest.raises(SpanwiseError, match="worker processes cannot be started: EOFError"):
        ProcessPool(work, settings, workers=1)._start()
    with pytest.raises(SpanwiseError, match="worker processes cannot be started: EOFError"):
        GpuPool(work, settings, workers=1)._start_model(0, "address")


def test_a_dead_model_process_is_reported_before_its_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers end, too, when they lose the model process. Their end would not tell what to do."""
    pool = GpuPool(ShardWork(JobFolder(tmp_path, ".jsonl"), "jsonl"), ModelSettings("model"), workers=1)
    model, (here, there) = SimpleNamespace(is_alive=lambda: True, exitcode=-9), Pipe()
    pool._models = [ModelProcess(model, here, "address")]
    dead = SimpleNamespace(join=lambda *seconds: None, is_alive=lambda: False, exitcode=1, terminate=lambda: None)
    monkeypatch.setattr(pool, "_start", lambda: Worker(dead, here))

    def die(*connections: object, **options: object) -> list[Connection]:
        model.is_alive = lambda: False
        there.close()
        return [here]

    monkeypatch.setattr("spanwise.annotation.pool.wait", die)
    shard = Shard(Source(tmp_path / "a.jsonl", "a", "jsonl"), 0, None, "a")
    with pytest.raises(SpanwiseError, match=r"the model process was ended by signal 9 \(SIGKILL\)"):
        ProcessPool.run(pool, [shard], lambda event: None)


def test_the_modules_of_a_transformer_are_imported_in_advance(tmp_path: Path) -> None:
    assert transformer_modules(tmp_path) == []
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    assert transformer_modules(tmp_path)[1] == "transformers.models.xlm_roberta.modeling_xlm_roberta"


def test_no_modules_of_transformers_are_imported_for_a_plain_bert(tiny_bert: Path) -> None:
    assert transformer_modules(tiny_bert) == []
