"""CUDA graphs for small networks, whose kernels run faster than the host launches them.

Forward and backward are recorded once per input shape and replayed with one launch each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from spanwise.runtime.collection import paused_collection

LENGTH_MULTIPLE = 8  # lengths are padded to a multiple of this, so that few shapes occur
MAX_SHAPES = 64  # recorded; later shapes run without a graph
MAX_INPUT_SIZE = 1 << 23  # values in the inputs: larger ones keep a GPU busy, and every graph holds a copy of its inputs


def pad_length(length: int) -> int:
    """Round a length up to the next multiple of ``LENGTH_MULTIPLE``.

    >>> pad_length(17), pad_length(24)
    (24, 24)
    """
    return -(-length // LENGTH_MULTIPLE) * LENGTH_MULTIPLE


class _Function(nn.Module):
    """A function with its parameters. Recording modifies the module, so every shape needs a new one."""

    def __init__(self, module: nn.Module, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.module, self.function = module, function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


class CudaGraphs:
    """Run a function of tensors in training with recorded graphs, one per input shape.

    All graphs share one memory pool, because the backward pass of a batch always runs before the
    forward pass of the next. For the same reason, gradients must not be accumulated over batches.
    """

    def __init__(self, module: nn.Module, function: Callable[..., Tensor]) -> None:
        """``module`` holds the parameters that ``function`` uses."""
        self.module, self.function = module, function
        self.recorded: dict[tuple[torch.Size, ...], Any] = {}
        self.seen_once: set[tuple[torch.Size, ...]] = set()
        self.pool: Any = None

    def __call__(self, *inputs: Tensor) -> Tensor | None:
        """Return the result, or None if the caller must run this batch without a graph."""
        shape = tuple(tensor.shape for tensor in inputs)
        if shape not in self.recorded:
            if sum(map(Tensor.numel, inputs)) > MAX_INPUT_SIZE:
                return None
            if shape not in self.seen_once or len(self.recorded) >= MAX_SHAPES:
                self.seen_once.add(shape)  # recording costs several steps, so only repeated shapes are recorded
                return None
            self._record(shape, inputs)
        result: Tensor = self.recorded[shape](*inputs)
        return result

    def _record(self, shape: tuple[torch.Size, ...], inputs: tuple[Tensor, ...]) -> None:
        if self.pool is None:
            self.pool = torch.cuda.graph_pool_handle()
        samples = tuple(tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in inputs)
        with paused_collection():  # collecting an older graph would make the recording invalid
            self.recorded[shape] = torch.cuda.make_graphed_callables(
                _Function(self.module, self.function).train(), samples, allow_unused_input=True, pool=self.pool
            )
