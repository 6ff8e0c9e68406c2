"""Training steps of small encoders without the cost of launching their kernels one by one.

A small transformer keeps a fast GPU waiting: the host needs longer to launch some hundred kernels than the GPU to run them.
CUDA graphs record forward and backward once per shape of batch and replay each with one launch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

GRAIN = 8  # rows are padded to a multiple of this, so that few shapes occur
MOST = 64  # shapes that are recorded; what comes later runs as usual
# Architectures whose forward takes a complete mask and never waits for the device.
ABLE = frozenset(("bert", "roberta", "xlm-roberta", "camembert", "electra"))


class _Shape(nn.Module):
    """The encoder as a function of two tensors. Graphs are recorded on a wrapper of its own for every shape."""

    def __init__(self, model: nn.Module, read: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.model, self.read = model, read

    def forward(self, ids: Tensor, seen: Tensor) -> Tensor:
        rows, length = ids.shape
        # A mask that is complete already: building one from a padding mask makes the host wait for the device.
        mask = seen[:, None, None, :].expand(rows, 1, length, length)
        return self.read(ids, mask)


class Graphs:
    """Runs a transformer in training by recorded graphs, one per shape, where that is possible.

    All shapes share one pool of memory: a batch's backward always runs before the next batch's forward. For the same reason
    gradients must be used up before the next batch, so batches must not be accumulated.
    """

    def __init__(self, model: nn.Module, read: Callable[[Tensor, Tensor], Tensor]) -> None:
        """``read`` gives the states that are wanted of the model for ids and a mask."""
        self.model, self.read = model, read
        self.recorded: dict[tuple[int, int], Any] = {}
        self.seen_once: set[tuple[int, int]] = set()
        self.pool: Any = None

    def __call__(self, ids: Tensor, seen: Tensor) -> Tensor | None:
        """The states, or None where this batch has to run as usual, for its shape is rare."""
        shape = (ids.shape[0], ids.shape[1])
        if shape not in self.recorded:
            if shape not in self.seen_once or len(self.recorded) >= MOST:
                self.seen_once.add(shape)  # recording costs as much as some steps: only what comes again is worth it
                return None
            self._record(shape, ids, seen)
        states: Tensor = self.recorded[shape](ids, seen)
        return states

    def _record(self, shape: tuple[int, int], ids: Tensor, seen: Tensor) -> None:
        if self.pool is None:
            self.pool = torch.cuda.graph_pool_handle()
        wrapper = _Shape(self.model, self.read).train()
        self.recorded[shape] = torch.cuda.make_graphed_callables(
            wrapper, (ids.clone(), seen.clone()), allow_unused_input=True, pool=self.pool
        )
