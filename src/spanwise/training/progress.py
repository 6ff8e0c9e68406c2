"""A bar with the live loss and dev F1 on a terminal; one line an epoch in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from torch import Tensor


class Progress:
    """Shows how far a training is. Reads the loss rarely, since reading it makes a GPU wait."""

    def __init__(self, total: int, done: int, say: Callable[[str], None], *, shows: bool = True) -> None:
        self.total, self.done, self.say = total, done, say
        self.text, self.shown = "", 0.0
        self.bar: Any = None
        if shows and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
            self.bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self.task = self.bar.add_task("", total=total, completed=done)

    def __enter__(self) -> Progress:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.bar:
            self.bar.stop()

    def step(self, loss: Tensor) -> None:
        self.done += 1
        now = time.monotonic()
        if self.bar and now - self.shown > 0.5:
            self.shown = now
            self.bar.update(self.task, completed=self.done, description=f"loss {float(loss):.4f} {self.text}")

    def epoch(self, row: dict[str, Any], better: bool) -> None:
        dev = row["dev"]
        self.text = f"dev F1 {dev['f1']:.4f}"
        mark = " (best)" if better else ""
        line = (
            f"epoch {row['epoch']}: loss {row['loss']:.4f}, dev P {dev['precision']:.4f} R {dev['recall']:.4f} "
            f"F1 {dev['f1']:.4f}{mark}, {row['seconds']:.1f} s"
        )
        if self.bar:
            self.bar.console.print(line, highlight=False)
        else:
            self.say(line)
