"""Batches and scores between processes: the host part of a model in a worker, the network elsewhere."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from spanwise.batching.batches import Batch, PackedBatch
from spanwise.decoding.thresholds import Thresholds
from spanwise.heads.base import ScoredSpans

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """A batch to score, as bytes that need no shared memory. Its result has the same number."""

    number: int
    threshold: Thresholds
    memory: Any  # NumPy bytes
    layout: list[Any]

    @classmethod
    def of(cls, number: int, batch: Batch, threshold: Thresholds) -> Request:
        packed = PackedBatch.pack(batch)
        return cls(number, threshold, packed.memory.numpy(), packed.layout)

    def batch(self, device: torch.device) -> Batch:
        memory = torch.from_numpy(self.memory)
        return PackedBatch(np.empty(0, np.int64), memory, self.layout).to(device)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a batch could not be scored."""

    reason: str


def dump(message: Any) -> bytes:
    """Serialise a message without the shared memory that torch would use for its tensors."""
    return pickle.dumps(message, protocol=5)


def to_arrays(scored: ScoredSpans) -> ScoredSpans:
    """Replace the tensors of scored spans by NumPy arrays, which are cheap to send."""
    return map_values(scored, Tensor, lambda tensor: tensor.detach().cpu().numpy())


def to_tensors(scored: ScoredSpans) -> ScoredSpans:
    return map_values(scored, np.ndarray, torch.from_numpy)


def map_values(value: T, kind: type, change: Callable[[Any], Any]) -> T:
    """Apply a function to all values of a type in a dataclass and the dataclasses in it."""
    changes = {}
    for item in fields(value):  # type: ignore[arg-type]
        content = getattr(value, item.name)
        if isinstance(content, kind):
            changes[item.name] = change(content)
        elif is_dataclass(content):
            changes[item.name] = map_values(content, kind, change)
    return replace(value, **changes)  # type: ignore[type-var]
