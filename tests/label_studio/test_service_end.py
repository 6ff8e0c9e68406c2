"""A training process ends with the service that started it, and otherwise ends normally."""

from __future__ import annotations

import signal
import subprocess
import sys

COMMAND = "from spanwise.label_studio.service_end import end_with_service\nend_with_service()\n"


def start(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", COMMAND + code], stdin=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_training_ends_with_its_service() -> None:
    with start("import threading\nthreading.Event().wait()") as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == -signal.SIGTERM


def test_a_training_that_is_finished_ends_without_an_error() -> None:
    with start("import time\ntime.sleep(0.1)") as process:  # until the thread waits
        assert process.wait() == 0, "while the service runs"
        assert process.stderr is not None
        assert process.stderr.read() == b""
