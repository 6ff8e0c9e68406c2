"""Where to compute, and in which process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from spanwise.core.errors import SpanwiseError

# On a CPU, LSTMs are compiled for every shape of a batch and 1024 of these are kept: long documents would need much memory.
# Few shapes come again soon, so that few are worth keeping. Read when the first one is made.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")


def wants_cuda(device: str) -> bool:
    """Whether to compute on a GPU, for what a user said: ``cpu``, ``cuda`` or ``auto`` (a GPU where there is one).

    >>> wants_cuda("cpu")
    False
    """
    if device not in ("cpu", "cuda", "auto"):
        raise SpanwiseError(f"device {device!r}: expected cpu, cuda or auto")
    if device == "cuda" and not torch.cuda.is_available():
        raise SpanwiseError("device 'cuda': no CUDA device can be used here; take cpu or auto")
    return device != "cpu" and torch.cuda.is_available()


def is_traced() -> bool:
    """Whether operations are being written down as a graph for another runtime, and not only computed."""
    traced: bool = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return traced


def is_main_process() -> bool:
    """Whether this process speaks and writes: the first of those that ``accelerate launch`` or ``torchrun`` started."""
    return os.environ.get("RANK", "0") == "0"


def is_alone() -> bool:
    """Whether there is no other process that trains the same model."""
    return os.environ.get("WORLD_SIZE", "1") == "1"


@contextmanager
def exact_products() -> Iterator[None]:
    """Products in full float32 on a GPU too, where training takes TF32 with its ten bits.

    Sums over sequences need it, and a model should find the same wherever it is asked: while it trains and when it is loaded.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
