"""Whole training steps as CUDA graphs: forward, backward, clipping and update with one launch.

A small encoder computes a step in about two milliseconds, but the host needs five times as long to
launch its kernels one by one. Batches of one shape share a graph, and one copy moves the batch and
the learning rates of its step to the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from spanwise.batching.batches import Batch, PackedBatch
from spanwise.runtime.collection import paused_collection

STAGES = 8  # pinned blocks of memory: how many steps the host may be ahead of the device
Compute = Callable[[Batch], dict[str, Tensor]]


@dataclass(slots=True)
class _Recorded:
    """A recorded step: the memory that it reads, and the losses that it writes."""

    graph: torch.cuda.CUDAGraph
    memory: Tensor  # of a batch, followed by the learning rates
    names: tuple[str, ...]
    values: Tensor


class StepGraphs:
    """Records and replays training steps, one graph per batch shape.

    ``compute`` makes a step: it computes gradients, updates the weights without changing the
    schedule, and returns scalars. It must not wait for the device. The first batch of a shape runs
    without a graph, because libraries and optimiser allocate memory then.
    """

    def __init__(self, compute: Compute, optimizer: Optimizer, device: torch.device) -> None:
        self.compute, self.optimizer, self.device = compute, optimizer, device
        self.recorded: dict[Any, _Recorded] = {}
        self.seen: set[Any] = set()
        self.pool = torch.cuda.graph_pool_handle()
        self._stages: list[tuple[Tensor, torch.cuda.Event]] = []
        self._turn = 0

    def __call__(self, packed: PackedBatch) -> dict[str, Tensor]:
        """Make a training step and return its scalars."""
        key = packed.key
        if key not in self.recorded:
            if key not in self.seen:
                self.seen.add(key)
                return self.compute(packed.to(self.device))
            self.recorded[key] = self._record(packed)
        recorded = self.recorded[key]
        self._send(packed, recorded.memory)
        recorded.graph.replay()
        values = recorded.values.clone()  # the next step overwrites them
        return dict(zip(recorded.names, values.unbind(), strict=True))

    def _record(self, packed: PackedBatch) -> _Recorded:
        """Record a step that reads its batch and learning rates from one block of memory."""
        groups = self.optimizer.param_groups
        size = len(packed.memory)
        memory = torch.empty(size + 4 * len(groups), dtype=torch.uint8, device=self.device)  # a rate has four bytes
        memory[:size].copy_(packed.memory)  # recording reads no values, but a batch is valid at any time
        rates = [group["lr"] for group in groups]
        for group, rate in zip(groups, memory[size:].view(torch.float32).unbind(), strict=True):
            group["lr"], group["capturable"] = rate, True
        graph = torch.cuda.CUDAGraph()
        try:
            # Collecting an older graph while a new one is recorded would make the recording invalid.
            with paused_collection(), torch.cuda.graph(graph, pool=self.pool):
                losses = self.compute(packed.view(memory))
                values = torch.stack([value.float() for value in losses.values()])
        finally:
            for group, old in zip(groups, rates, strict=True):
                group["lr"], group["capturable"] = old, False
        return _Recorded(graph, memory, tuple(losses), values)

    def _send(self, packed: PackedBatch, memory: Tensor) -> None:
        """Copy a batch and the current learning rates to the memory of a recorded step."""
        rates = torch.tensor([group["lr"] for group in self.optimizer.param_groups], dtype=torch.float32).view(torch.uint8)
        size = len(packed.memory)
        stage, copied = self._stage(size + len(rates))
        stage[:size].copy_(packed.memory)
        stage[size : size + len(rates)].copy_(rates)
        memory.copy_(stage[: len(memory)], non_blocking=True)
        copied.record()

    def _stage(self, size: int) -> tuple[Tensor, torch.cuda.Event]:
        """A pinned block of memory whose last copy has finished."""
        if len(self._stages) < STAGES:
            self._stages.append((torch.empty(size, dtype=torch.uint8, pin_memory=True), torch.cuda.Event()))  # type: ignore[no-untyped-call]
            return self._stages[-1]
        self._turn = (self._turn + 1) % STAGES
        stage, copied = self._stages[self._turn]
        copied.synchronize()
        if len(stage) < size:
            stage = torch.empty(2 * size, dtype=torch.uint8, pin_memory=True)
            self._stages[self._turn] = stage, copied
        return stage, copied
