"""Stopping a training whose numbers have gone bad."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import torch
from torch import Tensor

from spanwise.batching.batches import TrainingBatches
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence

SHOWN = 8  # sentences of a batch that are named


class Watch:
    """Looks whether losses and gradients are finite, ``every`` so many at once: a GPU need not be waited for at each step."""

    def __init__(self, batches: TrainingBatches, sentences: Sequence[Sentence], every: int) -> None:
        self.batches, self.sentences, self.every = batches, sentences, every
        self._recent: list[tuple[int, str, Tensor]] = []

    def add(self, step: int, loss: Tensor, norm: Tensor | None) -> None:
        """What came of a step: its loss, and the norm of the gradient where there was an update."""
        self._recent.append((step, "loss", loss))
        if norm is not None:
            self._recent.append((step, "gradient", norm))
        if len(self._recent) >= self.every:
            self.look()

    def look(self) -> None:
        """Stop when something is not finite, and name the batch it came from."""
        if not self._recent:
            return
        finite = torch.isfinite(torch.stack([value.detach().float() for *_, value in self._recent])).tolist()
        for (step, what, _), is_finite in zip(self._recent, finite, strict=True):
            if not is_finite:
                names = [self.sentences[number].id for number in self.batches.batches[step]]
                shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
                raise SpanwiseError(
                    f"the {what} of step {step + 1} (epoch {bisect_right(self.batches.ends, step) + 1}) is not a number; its "
                    f"batch holds the sentences {shown}. Lower training.encoder_rate and training.head_rate, or set "
                    "training.precision=fp32"
                )
        self._recent.clear()
