"""Devices, precision and processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from spanwise.core.errors import SpanwiseError

# On a CPU, oneDNN compiles LSTMs for every batch shape and caches 1024 of them. Long documents would
# need much memory, and few shapes recur soon. oneDNN reads this variable when it compiles the first.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")


def should_use_cuda(device: str) -> bool:
    """Whether to use a GPU for the device ``cpu``, ``cuda`` or ``auto`` (a GPU if available).

    >>> should_use_cuda("cpu")
    False
    """
    if device not in ("cpu", "cuda", "auto"):
        raise SpanwiseError(f"device {device!r}: expected cpu, cuda or auto")
    if device == "cuda" and not torch.cuda.is_available():
        raise SpanwiseError("device 'cuda': no CUDA device is available; use cpu or auto")
    return device != "cpu" and torch.cuda.is_available()


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    count, names = torch.cuda.device_count(), os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return names.split(",")[:count] if names else [str(index) for index in range(count)]


def is_traced() -> bool:
    """Whether operations are being traced into a graph for export."""
    traced: bool = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    return traced


def is_main_process() -> bool:
    """Whether this is the first process, which prints and writes files."""
    return os.environ.get("RANK", "0") == "0"


def is_single_process() -> bool:
    """Whether only one process trains the model."""
    return os.environ.get("WORLD_SIZE", "1") == "1"


@contextmanager
def full_precision() -> Iterator[None]:
    """Multiply matrices in full float32 on a GPU, where training uses TF32 (ten bits of mantissa).

    Sums over sequences need it, and predictions must be the same during training and after loading.
    """
    previous = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(previous)
