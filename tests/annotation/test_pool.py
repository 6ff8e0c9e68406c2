"""Starting worker processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanwise.annotation.engine import ModelSettings
from spanwise.annotation.job import JobFolder
from spanwise.annotation.pool import ProcessPool, transformer_modules
from spanwise.annotation.shard_work import ShardWork
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
    pool = ProcessPool(ShardWork(JobFolder(tmp_path, ".jsonl"), "jsonl"), ModelSettings("model"), workers=1)
    with pytest.raises(SpanwiseError, match="worker processes cannot be started: EOFError"):
        pool._start()


def test_the_modules_of_a_transformer_are_imported_in_advance(tmp_path: Path) -> None:
    assert transformer_modules(tmp_path) == []
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    assert transformer_modules(tmp_path)[1] == "transformers.models.xlm_roberta.modeling_xlm_roberta"


def test_no_modules_of_transformers_are_imported_for_a_plain_bert(tiny_bert: Path) -> None:
    assert transformer_modules(tiny_bert) == []
