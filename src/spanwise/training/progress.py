"""Training progress: a bar on a terminal, one line per epoch in a log, the expected time and a hint if steps are slow."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import fmean, median
from types import TracebackType
from typing import Any

from torch import Tensor

from spanwise.runtime.progress import ProgressBar
from spanwise.runtime.threads import SlowStepCheck

ESTIMATE_AFTER, MIN_STEPS = 5.0, 10  # seconds and steps
SLOW = 5.0  # times the median; such a step recorded a CUDA graph or compiled a kernel
MIN_TOTAL = 30.0  # seconds; a shorter training needs no estimate


class Progress:
    """Progress of a training on the terminal. It rarely reads the loss, because reading it makes a GPU wait.

    ``total`` and ``done`` count steps. With ``slow_steps``, a hint is logged if steps are slow.
    """

    def __init__(
        self,
        total: int,
        done: int,
        log: Callable[[str], None],
        *,
        epochs: int = 1,
        shows: bool = True,
        slow_steps: SlowStepCheck | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.total, self.done, self.log, self.epochs, self.dev_scores = total, done, log, epochs, ""
        self.bar = ProgressBar(total, done, is_visible=shows)
        self._clock, self._slow_steps = clock, slow_steps
        self._durations: list[float] = []  # of the steps until the time is estimated
        self._passed, self._is_estimated = 0.0, False
        self._last_step: float | None = None  # None before the first step of an epoch

    def __enter__(self) -> Progress:
        self.bar.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bar.__exit__(kind, error, trace)

    def step(self, loss: Tensor) -> None:
        self.done += 1
        self.bar.show(self.done, lambda: f"loss {float(loss):.4f} {self.dev_scores}")
        self._estimate()
        if self._slow_steps is not None and (hint := self._slow_steps.step()):
            self.bar.print_line(f"note: {hint}", self.log)

    def epoch(self, row: dict[str, Any], dev_scores: str, score: float, *, is_best: bool) -> None:
        """Show the metrics of an epoch; ``dev_scores`` is their dev part as text, ``score`` selects the epoch."""
        self.dev_scores = f"dev {dev_scores}"
        mark = " (best)" if is_best and score > 0 else ""
        self.bar.print_line(
            f"epoch {row['epoch']}: loss {row['loss']:.4f}, dev {dev_scores}{mark}, {row['seconds']:.1f} s", self.log
        )
        self._last_step = None
        if self._slow_steps is not None:
            self._slow_steps.restart()

    def _estimate(self) -> None:
        """Log the expected time once, from the first steps without the slowest ones, which later steps do not resemble."""
        if self._is_estimated:
            return
        now = self._clock()
        if self._last_step is not None:
            self._durations.append(now - self._last_step)
            self._passed += self._durations[-1]
        self._last_step = now
        if self._passed < ESTIMATE_AFTER or len(self._durations) < MIN_STEPS:
            return
        self._is_estimated = True
        limit = SLOW * median(self._durations)
        step_seconds = fmean(duration for duration in self._durations if duration <= limit)
        total_seconds = self._passed + (self.total - self.done + 1) * step_seconds
        if total_seconds >= MIN_TOTAL:
            epoch = format_duration(step_seconds * self.total / self.epochs)
            line = f"expect about {epoch} per epoch and {format_duration(total_seconds)} in total, without scoring dev"
            self.bar.print_line(line, self.log)


def format_duration(seconds: float) -> str:
    """Format a duration with about two digits.

    >>> [format_duration(seconds) for seconds in (0.4, 42.4, 61, 1210, 5400, 200_000)]
    ['1 s', '42 s', '1 min', '20 min', '1.5 h', '56 h']
    """
    if round(seconds) < 60:
        return f"{max(1, round(seconds))} s"
    if round(seconds / 60) < 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h" if seconds < 36_000 else f"{round(seconds / 3600)} h"
