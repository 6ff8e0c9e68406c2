"""Seeds for the dropout of kernels, drawn for many layers at once.

A small kernel takes about two microseconds in a recorded step, so a draw per layer would cost as much
as the norms.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

COUNT = 64  # seeds that are drawn at once
LARGEST = 1 << 30

_shared: ContextVar[list[Tensor] | None] = ContextVar("shared_seeds", default=None)


@contextmanager
def shared_seeds() -> Iterator[None]:
    """Draw the seeds of all layers that run in this block together.

    Every entry draws new seeds. So a step has the same random numbers if it is recorded, replayed or
    repeated by a checkpoint of activations, as long as the whole block is.
    """
    token = _shared.set([])
    try:
        yield
    finally:
        _shared.reset(token)


def next_seed(device: torch.device) -> Tensor:
    """A random seed on the device, the first value of the result [2]. A recorded step draws new ones each time."""
    seeds = _shared.get()
    if seeds is None:
        return _draw(1, device)[0]
    if not seeds:
        seeds.extend(reversed(_draw(COUNT, device)))
    return seeds.pop()


def _draw(count: int, device: torch.device) -> list[Tensor]:
    """Seeds in rows of 16 bytes: Triton would compile each kernel again for another alignment."""
    return list(torch.randint(LARGEST, (count, 2), device=device).unbind())
