"""Training progress: a bar on a terminal, one line per epoch in a log."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from torch import Tensor

from spanwise.runtime.progress import ProgressBar


class Progress:
    """Shows the progress of training. It rarely reads the loss, because reading it makes a GPU wait."""

    def __init__(self, total: int, done: int, log: Callable[[str], None], *, shows: bool = True) -> None:
        self.done, self.log, self.dev_scores = done, log, ""
        self.bar = ProgressBar(total, done, is_visible=shows)

    def __enter__(self) -> Progress:
        self.bar.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bar.__exit__(kind, error, trace)

    def step(self, loss: Tensor) -> None:
        self.done += 1
        self.bar.show(self.done, lambda: f"loss {float(loss):.4f} {self.dev_scores}")

    def epoch(self, row: dict[str, Any], dev_scores: str, score: float, *, is_best: bool) -> None:
        """Show the metrics of an epoch; ``dev_scores`` is their dev part as text, ``score`` selects the epoch."""
        self.dev_scores = f"dev {dev_scores}"
        mark = " (best)" if is_best and score > 0 else ""
        self.bar.line(f"epoch {row['epoch']}: loss {row['loss']:.4f}, dev {dev_scores}{mark}, {row['seconds']:.1f} s", self.log)
