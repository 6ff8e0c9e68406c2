"""The decision whether training uses the project's Triton kernels, and the comparison of a kernel with PyTorch."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from spanwise.core.errors import SpanwiseError, SpanwiseWarning
from spanwise.runtime.device import is_main_process

SWITCH = "SPANWISE_KERNELS"
MIN_STEPS = 2000  # of a training; compiling takes longer than the kernels save in fewer steps
TOLERANCE = 0.02  # relative to the largest value; TF32 and bfloat16 differ by less, wrong results by more
MAX_VALUES = 1 << 31  # of a tensor; kernels count them with 32 bits

_planned_steps: int | None = None
_reported: set[str] = set()  # reasons that a warning has given


def plan_steps(count: int | None) -> None:
    """Set the number of optimiser steps of the training that starts now, and check the switch."""
    global _planned_steps
    if (switch := os.environ.get(SWITCH, "")) not in ("", "0", "1"):
        raise SpanwiseError(f"environment variable {SWITCH}={switch}: expected 0 (no kernels) or 1 (for any number of steps)")
    _planned_steps = count


def uses_kernels() -> bool:
    """Whether training on a GPU uses kernels, where they work: by default, if it is not short.

    The environment variable ``SPANWISE_KERNELS`` turns them off (``0``) or on for any number of steps (``1``).
    """
    switch = os.environ.get(SWITCH)
    if switch in ("0", "1"):
        return switch == "1"
    return _planned_steps is None or _planned_steps >= MIN_STEPS


def kernels_agree(
    name: str, kernels: Callable[..., Tensor], reference: Callable[..., Tensor], inputs: Sequence[Tensor]
) -> bool:  # fmt: skip
    """Whether kernels compute the results and gradients of ``reference``, a function of PyTorch, without dropout.

    The gradients of all inputs of floats are compared, if there are any. Triton may be missing, or lack a C
    compiler, support for the device, or memory for a block. Without kernels, training is slower but the same,
    so any error is a reason not to use them, which one warning reports. Random numbers of the training stay
    the same.
    """
    device = inputs[0].device
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.autocast(device.type, enabled=False):
            expected = _train(reference, [tensor.float() if tensor.is_floating_point() else tensor for tensor in inputs])
            actual = _train(kernels, inputs)
            errors = torch.stack([_relative_error(*pair) for pair in zip(actual, expected, strict=True)])
            error = errors.max().item()  # waits for the device, which reports its errors only then
        if error <= TOLERANCE:
            return True
        reason = f"results differ from PyTorch by {error:.2g} of the largest value"
    except Exception as problem:  # of many kinds
        reason = f"{type(problem).__name__}: {problem}".splitlines()[0]
        if isinstance(problem, ModuleNotFoundError) and problem.name == "triton":
            name, reason = "Triton", "Triton is not installed"  # for all kernels
    if reason not in _reported and is_main_process():
        _reported.add(reason)
        message = f"training without the {name} kernels, which is slower: {reason}"
        advice = f"{SWITCH}=0 trains without kernels and without this warning"
        warnings.warn(f"{message}; {advice}", SpanwiseWarning, stacklevel=2)
    return False


def _train(function: Callable[..., Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """The result of a function and the gradients of all inputs of floats."""
    with torch.enable_grad():
        inputs = [tensor.detach().requires_grad_(tensor.is_floating_point()) for tensor in inputs]
        result = function(*inputs)
        numbers = torch.arange(result.numel(), device=result.device).view(result.shape)
        gradient = torch.cos(numbers.float()).to(result.dtype)
        parameters = [tensor for tensor in inputs if tensor.requires_grad] if result.requires_grad else []
        return [result.detach(), *(torch.autograd.grad(result, parameters, gradient) if parameters else ())]


def _relative_error(actual: Tensor, expected: Tensor) -> Tensor:
    """The largest difference relative to the largest value; infinite if values are not finite."""
    actual, expected = actual.double(), expected.double()
    error = (actual - expected).abs().max() / expected.abs().max().clamp(min=1e-6)
    return torch.where(error.isnan(), torch.inf, error)


def example_values(*shape: int, device: torch.device, dtype: torch.dtype = torch.float32, seed: int = 1) -> Tensor:
    """Normally distributed values for a comparison, the same on all devices."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(device, dtype)
