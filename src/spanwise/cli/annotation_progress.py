"""Progress of an annotation: a bar on a terminal, a line every minute elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from spanwise.annotation.run import Listener
from spanwise.core.counting import counted
from spanwise.core.terminal import escape_controls
from spanwise.runtime.progress import ProgressBar

if TYPE_CHECKING:
    from spanwise.annotation.shards import Shard

LINE_SECONDS = 60.0  # between two lines of a log


class AnnotationProgress(Listener):
    """Counts rows and words, and shows them with the remaining time.

    It follows from the number of rows, which is estimated from the rows of finished shards and the sizes of all.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.rows = self.words = self.done_rows = self.total_size = self.done_size = self.shards = self.done_shards = 0
        self._clock, self._started, self._last_line = clock, clock(), clock()
        self._bar: ProgressBar | None = None

    def __enter__(self) -> AnnotationProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)

    def start(self, shards: Sequence[Shard], finished: Sequence[Shard]) -> None:
        if finished:
            sys.stderr.write(f"note: finished shards: {len(finished):,} of {len(finished) + len(shards):,}; resuming\n")
        self.shards, self.total_size = len(shards), sum(shard.size for shard in shards)
        self._started = self._last_line = self._clock()
        self._bar = ProgressBar(len(shards), has_time=False).__enter__()

    def advance(self, rows: int, words: int) -> None:
        self.rows += rows
        self.words += words
        self._show()

    def finish_shard(self, shard: Shard, rows: int) -> None:
        self.done_rows += rows
        self.done_size += shard.size
        self.done_shards += 1
        self._show()

    def note(self, text: str) -> None:
        assert self._bar is not None
        self._bar.print_line(f"note: {escape_controls(text)}", lambda line: print(line, file=sys.stderr))

    @property
    def status(self) -> str:
        """Rows, rows and words per second and, when a shard is finished, the remaining time. The bar adds shards."""
        seconds, remaining = max(self._clock() - self._started, 1e-6), ""
        if self.done_rows and self.rows:
            total = self.done_rows * self.total_size / self.done_size
            left = seconds * max(0.0, total - self.rows) / self.rows
            remaining = f", {int(left) // 3600}:{int(left) // 60 % 60:02}:{int(left) % 60:02} left"
        rates = f"{self.rows / seconds:,.0f} rows/s, {self.words / seconds:,.0f} words/s"
        return f"{counted(self.rows, 'row')}, {rates}{remaining}"

    @property
    def text(self) -> str:
        """A line for a log."""
        return f"{self.done_shards:,} of {counted(self.shards, 'shard')}, {self.status}"

    @property
    def speed(self) -> str:
        """Rows per second since the first shard was started, for the summary; empty if nothing was annotated."""
        seconds = self._clock() - self._started
        return f"{self.rows / seconds:,.0f} rows/s, " if self.rows and seconds > 0 else ""

    def _show(self) -> None:
        assert self._bar is not None
        self._bar.show(self.done_shards, lambda: self.status)
        if not sys.stderr.isatty() and self._clock() - self._last_line >= LINE_SECONDS:
            self._last_line = self._clock()
            sys.stderr.write(f"{self.text}\n")
