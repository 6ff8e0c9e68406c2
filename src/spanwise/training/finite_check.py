"""Stop training if the loss or gradient is not finite."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import torch
from torch import Tensor

from spanwise.batching.batches import TrainingBatches
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence

MAX_IDS = 8  # sentences of a batch that an error lists


class FiniteCheck:
    """Checks losses and gradients, ``interval`` values at a time, because reading each one would make a GPU wait."""

    def __init__(self, batches: TrainingBatches, sentences: Sequence[Sentence], interval: int) -> None:
        self.batches, self.sentences, self.interval = batches, sentences, interval
        self._recent: list[tuple[int, str, Tensor]] = []

    def add(self, step: int, loss: Tensor, gradient_norm: Tensor | None) -> None:
        """Add the values of a step; there is no gradient norm without an optimiser step."""
        self._recent.append((step, "loss", loss))
        if gradient_norm is not None:
            self._recent.append((step, "gradient", gradient_norm))
        if len(self._recent) >= self.interval:
            self.check()

    def check(self) -> None:
        """Raise an error that names the batch of the first value that is not finite."""
        if not self._recent:
            return
        finite = torch.isfinite(torch.stack([value.detach().float() for *_, value in self._recent])).tolist()
        for (step, name, _), is_finite in zip(self._recent, finite, strict=True):
            if not is_finite:
                ids = [self.sentences[index].id for index in self.batches.batches[step]]
                listed = ", ".join(ids[:MAX_IDS]) + (", …" if len(ids) > MAX_IDS else "")
                epoch = bisect_right(self.batches.ends, step) + 1
                raise SpanwiseError(
                    f"the {name} of step {step + 1} (epoch {epoch}) is not finite; sentences of its batch: {listed}. "
                    "Lower training.encoder_rate and training.head_rate, or set training.precision=fp32"
                )
        self._recent.clear()
