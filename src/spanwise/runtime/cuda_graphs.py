"""Training steps of small networks without the cost of launching their kernels one by one.

A small transformer keeps a fast GPU waiting: the host needs longer to launch some hundred kernels than the GPU to run them.
CUDA graphs record forward and backward once per shape of the inputs and replay each with one launch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

GRAIN = 8  # lengths are padded to a multiple of this, so that few shapes occur
MOST = 64  # shapes that are recorded; what comes later runs as usual
LARGEST = 1 << 23  # numbers in the inputs: more keep a GPU busy without this, and every shape holds copies of its inputs


def padded_to_grain(length: int) -> int:
    """The length that shapes are padded to.

    >>> padded_to_grain(17), padded_to_grain(24)
    (24, 24)
    """
    return -(-length // GRAIN) * GRAIN


class _Function(nn.Module):
    """A function with its parameters, as recording wants it; it is changed thereby, so every shape has one of its own."""

    def __init__(self, module: nn.Module, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.module, self.function = module, function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


class Graphs:
    """Runs a function of tensors in training by recorded graphs, one per shape, where that is possible.

    All shapes share one pool of memory: a batch's backward always runs before the next batch's forward. For the same reason
    gradients must be used up before the next batch, so batches must not be accumulated.
    """

    def __init__(self, module: nn.Module, function: Callable[..., Tensor]) -> None:
        """``module`` has the parameters that ``function`` uses."""
        self.module, self.function = module, function
        self.recorded: dict[tuple[torch.Size, ...], Any] = {}
        self.seen_once: set[tuple[torch.Size, ...]] = set()
        self.pool: Any = None

    def __call__(self, *inputs: Tensor) -> Tensor | None:
        """What the function gives, or None where this batch has to run as usual, for its shape is rare."""
        shape = tuple(tensor.shape for tensor in inputs)
        if shape not in self.recorded:
            if sum(map(Tensor.numel, inputs)) > LARGEST:
                return None
            if shape not in self.seen_once or len(self.recorded) >= MOST:
                self.seen_once.add(shape)  # recording costs as much as some steps: only what comes again is worth it
                return None
            self._record(shape, inputs)
        result: Tensor = self.recorded[shape](*inputs)
        return result

    def _record(self, shape: tuple[torch.Size, ...], inputs: tuple[Tensor, ...]) -> None:
        if self.pool is None:
            self.pool = torch.cuda.graph_pool_handle()
        samples = tuple(tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in inputs)
        self.recorded[shape] = torch.cuda.make_graphed_callables(
            _Function(self.module, self.function).train(), samples, allow_unused_input=True, pool=self.pool
        )
