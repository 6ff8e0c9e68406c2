"""Progress bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

_listener: ContextVar[Callable[[int], None] | None] = ContextVar("listener", default=None)
_has_bars = True


def hide_progress_bars() -> None:
    """Show no bars in this process from now on, because several processes share its terminal."""
    global _has_bars
    _has_bars = False


class ProgressBar:
    """A progress bar on standard error. Hidden if that is no terminal or ``is_visible`` is False.

    ``total`` is None if the number of steps is unknown. The remaining time follows from the steps of the last 30
    seconds; for longer steps, pass ``has_time=False`` and estimate it in the text.
    """

    def __init__(self, total: int | None, done: int = 0, *, is_visible: bool = True, has_time: bool = True) -> None:
        self._last_update = 0.0
        self._bar: Any = None
        if is_visible and _has_bars and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            counts = () if total is None else (MofNCompleteColumn(),)
            times = () if total is None or not has_time else (TimeRemainingColumn(),)
            columns = (BarColumn(), *counts, *times, TextColumn("{task.description}"))
            # Text for a file or pipe must not be printed above the bar, on standard error.
            redirects = sys.stdout.isatty()
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=redirects)
            self._task = self._bar.add_task("", total=total, completed=done)

    def __enter__(self) -> ProgressBar:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()

    def show(self, done: int, text: Callable[[], str]) -> None:
        """Update at most twice a second; ``text`` is called only then, since it may wait for a GPU."""
        now = time.monotonic()
        if self._bar and now - self._last_update > 0.5:
            self._last_update = now
            self._bar.update(self._task, completed=done, description=text())

    def print_line(self, text: str, log: Callable[[str], None]) -> None:
        """Print a permanent line above the bar, or log it if there is no bar."""
        if self._bar:
            self._bar.console.print(text, highlight=False, markup=False)
        else:
            log(text)


@contextmanager
def listen(listener: Callable[[int], None]) -> Iterator[None]:
    """Call ``listener`` with the number of items of every ``advance`` within the context, in this thread."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def advance(count: int) -> None:
    """Report finished items, such as the sentences of a batch, to the listener, if there is one."""
    if (listener := _listener.get()) is not None:
        listener(count)
