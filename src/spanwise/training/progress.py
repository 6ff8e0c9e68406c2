"""A bar with the live loss and the last dev scores on a terminal; one line an epoch in a log."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from torch import Tensor

from spanwise.runtime.terminal import Bar


class Progress:
    """Shows how far a training is. Reads the loss rarely, since reading it makes a GPU wait."""

    def __init__(self, total: int, done: int, log: Callable[[str], None], *, shows: bool = True) -> None:
        self.done, self.log, self.text = done, log, ""
        self.bar = Bar(total, done, shows=shows)

    def __enter__(self) -> Progress:
        self.bar.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bar.__exit__(kind, error, trace)

    def step(self, loss: Tensor) -> None:
        self.done += 1
        self.bar.show(self.done, lambda: f"loss {float(loss):.4f} {self.text}")

    def epoch(self, row: dict[str, Any], dev: str, better: bool) -> None:
        """An epoch's metrics; ``dev`` says what they have of the dev split."""
        self.text = f"dev {dev}"
        mark = " (best)" if better else ""
        self.bar.line(f"epoch {row['epoch']}: loss {row['loss']:.4f}, dev {dev}{mark}, {row['seconds']:.1f} s", self.log)
