"""Training that a GPU repeats bit for bit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from spanwise.core.errors import SpanwiseError

_NO_IMPLEMENTATION = " does not have a deterministic implementation"  # in an error of torch, after the operation
_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"  # a fixed workspace, without which products of matrices may differ


@contextmanager
def deterministic_algorithms(*, is_requested: bool = True) -> Iterator[None]:
    """Use only algorithms that add in a fixed order, and record no CUDA graphs, within the context.

    A recorded step and the same step without a graph may differ in the last bit, and a resumed run
    records its graphs at other steps.

    >>> with deterministic_algorithms():
    ...     torch.are_deterministic_algorithms_enabled()
    True
    """
    if not is_requested:
        yield
        return
    os.environ.setdefault(_WORKSPACE, ":4096:8")
    was_enabled = torch.are_deterministic_algorithms_enabled()
    warned_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    except RuntimeError as error:
        operation, problem, _ = str(error).partition(_NO_IMPLEMENTATION)
        if not problem:
            raise
        advice = "train without --deterministic, with --device cpu, or with another recipe"
        message = f"this training uses {operation}, which has no deterministic algorithm on this device; {advice}"
        raise SpanwiseError(message) from None
    finally:
        torch.use_deterministic_algorithms(was_enabled, warn_only=warned_only)
