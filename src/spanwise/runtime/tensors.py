"""Read and write tensors as safetensors files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError


def state_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The state dict of a model on the CPU. Tied weights, which share memory, are copied."""
    tensors: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict().items():
        tensor = tensor.detach().cpu().contiguous()
        tensors[name] = tensor.clone() if tensor.untyped_storage().data_ptr() in seen else tensor
        seen.add(tensor.untyped_storage().data_ptr())
    return tensors


def write_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write a safetensors file with default permissions (the library makes it private)."""
    path.touch()
    mode = path.stat().st_mode
    save_file(dict(tensors), path)
    path.chmod(mode)


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise SpanwiseError(f"{path}: cannot be read ({error}); the file may be truncated") from None


def check_finite(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Raise ``SpanwiseError`` if a tensor of a file contains NaN or infinite numbers."""
    for name, tensor in tensors.items():
        # A sum is three times as fast as `isfinite`, but can overflow.
        if tensor.is_floating_point() and not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
            raise SpanwiseError(
                f"{path}: the weight {name} contains NaN or infinite numbers; the file is damaged, or the training diverged"
            )


def load_weights(model: nn.Module, path: Path, *, is_mapped: bool = False) -> None:
    """Load weights into a model; missing, additional or misshapen tensors are an error.

    ``is_mapped`` uses the memory-mapped file instead of a copy, so that processes share one.
    """
    tensors = read_tensors(path)
    if is_mapped:
        types = {name: tensor.dtype for name, tensor in model.state_dict().items()}
        tensors = {name: tensor.to(types.get(name)) for name, tensor in tensors.items()}
    try:
        model.load_state_dict(tensors, assign=is_mapped)
    except RuntimeError as error:
        # The first line is a general message; the second line names the problem.
        problem = " ".join(line.strip() for line in str(error).splitlines()[1:2])
        raise SpanwiseError(f"{path}: the weights do not fit the model: {problem}") from None
