"""Starting worker processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from multiprocessing import forkserver
from pathlib import Path

import pytest

from spanwise.annotation.engine import ModelSettings
from spanwise.annotation.job import JobFolder
from spanwise.annotation.pool import ProcessPool, describe_exit, process_context, transformer_modules
from spanwise.annotation.shard_work import ShardWork
from spanwise.core.errors import SpanwiseError


def test_files_of_the_current_folder_are_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's profile.py in the current folder replaced the module of Python in the fork server."""
    seen: list[str | None] = []
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.setattr(forkserver, "ensure_running", lambda: seen.append(os.environ.get("PYTHONSAFEPATH")))
    process_context("model")
    assert seen == ["1"]
    assert "PYTHONSAFEPATH" not in os.environ


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="this system has no fork server")
def test_the_server_that_starts_workers_survives_interrupts() -> None:
    """Ctrl+C reaches all processes of a terminal, also while the server imports its modules."""
    code = """
import os, signal, time
from multiprocessing import forkserver
from spanwise.annotation.pool import process_context

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
context = process_context("model")
os.kill(forkserver._forkserver._forkserver_pid, signal.SIGINT)
worker = context.Process(target=time.sleep, args=(0,))
worker.start()
worker.join()
assert worker.exitcode == 0
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


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

    monkeypatch.setattr("spanwise.annotation.pool.process_context", lambda model: Context)
    pool = ProcessPool(ShardWork(JobFolder(tmp_path, ".jsonl"), "jsonl"), ModelSettings("model"), workers=1)
    with pytest.raises(SpanwiseError, match="worker processes cannot be started: EOFError"):
        pool._start()


def test_the_modules_of_a_transformer_are_imported_in_advance(tmp_path: Path) -> None:
    assert transformer_modules(tmp_path) == []
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    assert transformer_modules(tmp_path)[1] == "transformers.models.xlm_roberta.modeling_xlm_roberta"


def test_no_modules_of_transformers_are_imported_for_a_plain_bert(tiny_bert: Path) -> None:
    assert transformer_modules(tiny_bert) == []


def test_exit_codes_are_described() -> None:
    assert describe_exit(-11) == "was ended by signal 11 (SIGSEGV)"
    assert describe_exit(None) == "ended with exit code None"
