"""Starting and ending worker processes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from multiprocessing import forkserver

import pytest

from spanwise.runtime.processes import describe_exit, process_context


def test_files_of_the_current_folder_are_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's profile.py in the current folder replaced the module of Python in the fork server."""
    seen: list[str | None] = []
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.setattr(forkserver, "ensure_running", lambda: seen.append(os.environ.get("PYTHONSAFEPATH")))
    process_context(["json"])
    assert seen == ["1"]
    assert "PYTHONSAFEPATH" not in os.environ


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="this system has no fork server")
def test_the_server_that_starts_workers_survives_interrupts() -> None:
    """Ctrl+C reaches all processes of a terminal, also while the server imports its modules."""
    code = """
import os, signal, time
from multiprocessing import forkserver
from spanwise.runtime.processes import process_context

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
context = process_context(["json"])
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


def test_exit_codes_are_described() -> None:
    assert describe_exit(-11) == "was ended by signal 11 (SIGSEGV)"
    assert describe_exit(None) == "ended with exit code None"
