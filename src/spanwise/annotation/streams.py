"""Two streams of a GPU: one encodes a batch while the other scores the spans of the batch before it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


class Streams:
    """The streams of a device; on a CPU there are none, and everything runs in order.

    Memory of the encoding stream is read by the scoring stream. That is safe as long as the host keeps a
    batch until its scores have arrived.
    """

    def __init__(self, device: torch.device) -> None:
        self._encoding: Any = None
        self._scoring: Any = None
        if device.type == "cuda":
            self._encoding, self._scoring = (torch.cuda.Stream(device) for _ in range(2))  # type: ignore[no-untyped-call]
            torch.cuda.synchronize(device)  # the weights were copied by another stream

    def encoding(self) -> AbstractContextManager[Any]:
        return torch.cuda.stream(self._encoding) if self._encoding else nullcontext()

    def mark(self) -> Any:
        """Mark the work that the encoding stream has until now."""
        return self._encoding.record_event() if self._encoding else None

    def scoring(self, mark: Any) -> AbstractContextManager[Any]:
        """Work in the scoring stream, after what was marked in the other."""
        if not self._scoring:
            return nullcontext()
        self._scoring.wait_event(mark)
        return torch.cuda.stream(self._scoring)
