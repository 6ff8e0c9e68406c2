"""End a training process when the service that started it ends, also if the service is killed."""

from __future__ import annotations

import os
import signal
import threading


def end_with_service() -> None:
    """Watch standard input, a pipe from the service, in a thread; the kernel closes it when the service ends."""
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    while os.read(0, 1024):  # not sys.stdin, whose lock a waiting thread would hold at the end of the process
        pass
    os.kill(os.getpid(), signal.SIGTERM)
