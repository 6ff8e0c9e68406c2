"""Write weights and checkpoints while training continues."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType


class Writer:
    """Runs functions that write files: at once, or ``in_background``, one after the other in a thread.

    An epoch of a small model takes a second on a GPU, and so does writing its checkpoint. Values that
    are written in the background must not change meanwhile. An error is raised by the next call.

    >>> written = []
    >>> with Writer(in_background=True) as writer:
    ...     writer.write(lambda: written.append(1))
    ...     writer.write(lambda: written.append(2))
    >>> written
    [1, 2]
    """

    def __init__(self, *, in_background: bool) -> None:
        self._executor = ThreadPoolExecutor(1, "writer") if in_background else None
        self._written: Future[None] | None = None

    def write(self, function: Callable[[], None]) -> None:
        """Run a function, in the background as soon as the one before it has finished."""
        self.wait()
        if self._executor is None:
            function()
        else:
            self._written = self._executor.submit(function)

    def wait(self) -> None:
        """Wait until everything is written; raise the error of a function that failed."""
        if self._written is not None:
            wait([self._written])  # after an interrupt here, ``__exit__`` waits again
            written, self._written = self._written, None
            written.result()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Wait until everything is written; an error of the block matters more than one of the writing."""
        try:
            if error is None:
                self.wait()
        finally:
            if self._written is not None:
                wait([self._written])
