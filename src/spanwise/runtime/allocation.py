"""A limit on the memory that building a model takes, for configurations from untrusted sources."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from spanwise.core.errors import SpanwiseError

_FACTORIES = frozenset((torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn, torch.eye, torch.arange))
_ITEM_BYTES = 4
_MIN_BYTES = 1 << 14  # counted per tensor, so that a billion small layers are refused, too


class AllocationLimit(TorchFunctionMode):
    """Inside this context, tensors of more than ``limit`` bytes in total are refused before they are allocated.

    >>> with AllocationLimit(1 << 20, "run/model.safetensors"):
    ...     torch.nn.Linear(10**6, 10**6)
    Traceback (most recent call last):
    ...
    spanwise.core.errors.SpanwiseError: run/model.safetensors: the configuration describes a model far larger than its weights
    """

    def __init__(self, limit: int, source: object) -> None:
        super().__init__()
        self.limit, self.source, self.used = limit, source, 0

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _FACTORIES:
            self.used += max(_ITEM_BYTES * _count(func, [*args, kwargs.get("size", ())]), _MIN_BYTES)
            if self.used > self.limit:
                raise SpanwiseError(f"{self.source}: the configuration describes a model far larger than its weights")
        return func(*args, **kwargs)


def _count(func: Any, args: Iterable[Any]) -> int:
    """The number of values that a factory creates."""
    sizes: list[int] = []
    for arg in args:
        sizes.extend(size for size in (arg if isinstance(arg, Sequence) else [arg]) if isinstance(size, int))
    if func is torch.arange:
        return max(sizes, default=0)
    return math.prod(max(size, 0) for size in sizes) if sizes else 0
