"""A bar on a terminal, lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any


class Bar:
    """How far something is, drawn on standard error when that is a terminal and ``shows`` says so; otherwise not at all."""

    def __init__(self, total: int, done: int = 0, *, shows: bool = True) -> None:
        self.shown = 0.0
        self._bar: Any = None
        if shows and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=total, completed=done)

    def __enter__(self) -> Bar:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()

    def show(self, done: int, text: Callable[[], str]) -> None:
        """Draw, at most twice a second. ``text`` is asked for only then, since it may make a GPU wait."""
        now = time.monotonic()
        if self._bar and now - self.shown > 0.5:
            self.shown = now
            self._bar.update(self._task, completed=done, description=text())

    def line(self, text: str, log: Callable[[str], None]) -> None:
        """A line that stays: above the bar where there is one, said otherwise."""
        if self._bar:
            self._bar.console.print(text, highlight=False, markup=False)
        else:
            log(text)
