"""Commands in forked processes: they need no time for imports, and can be interrupted."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, NoReturn

from cli_runner import Result

from spanwise.cli import main

LIMIT = 300.0  # seconds, for commands that never end


class Forked:
    """A function that runs in a fork of this process, which has imported everything.

    ``stdin`` is a pipe to the function, unless a file is given. What it prints can be read at any time.
    """

    def __init__(self, function: Callable[[], object], stdin: IO[bytes] | None = None) -> None:
        read_end, write_end = os.pipe()
        self._outputs = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        self._end = time.monotonic() + LIMIT
        self._code: int | None = None
        import torch._dynamo  # noqa: F401  # the first training of a process imports it, which takes a second

        _end_threads_of_torch()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(write_end)
            _run(function, [read_end if stdin is None else stdin.fileno(), *(file.fileno() for file in self._outputs)])
        os.close(read_end)
        self.stdin = os.fdopen(write_end, "wb", buffering=0)

    @property
    def out(self) -> str:
        return self._text(0)

    @property
    def err(self) -> str:
        return self._text(1)

    def _text(self, number: int) -> str:
        descriptor = self._outputs[number].fileno()
        # Both processes share the position in the file, so it must not be moved here.
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode()

    def is_running(self) -> bool:
        if self._code is None and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._code is None

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition that the process fulfils before it ends."""
        while not condition():
            assert self.is_running(), f"it ended with {self._code}: {self.err}"
            assert time.monotonic() < self._end, "it takes too long"
            time.sleep(0.005)

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self) -> Result:
        """Close its standard input, and wait until it ends."""
        self.stdin.close()
        while self.is_running():
            assert time.monotonic() < self._end, "it does not end"
            time.sleep(0.005)
        assert self._code is not None
        return Result(self._code, self.out, self.err)

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_running():
            self.send_signal(signal.SIGKILL)
            self.wait()
        for file in (self.stdin, *self._outputs):
            file.close()


def forked_command(*arguments: object, stdin: IO[bytes] | None = None) -> Forked:
    """Start ``spanwise`` with these arguments."""
    words = [str(argument) for argument in arguments]
    return Forked(lambda: main(words), stdin)


def _end_threads_of_torch() -> None:
    """End the threads that torch keeps after work in several threads: a fork would wait for them forever."""
    maps = Path("/proc/self/maps")
    libraries = {line.split()[-1] for line in maps.read_text().splitlines() if "libgomp" in line} if maps.exists() else ()
    for path in libraries:
        ctypes.CDLL(path).omp_pause_resource_all(2)  # hard: the threads end, and start again when they are needed


def _run(function: Callable[[], object], descriptors: Sequence[int]) -> NoReturn:
    """Run the function with these standard streams, and end the process."""
    code = 1
    try:
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for name in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, signal.SIG_DFL)
        try:
            function()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        finally:
            os._exit(code)
