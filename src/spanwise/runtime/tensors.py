"""Tensors on disk: safetensors and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from spanwise.core.errors import SpanwiseError


def weights(model: nn.Module) -> dict[str, Tensor]:
    """The state of a model for saving, on the host. Tensors that share memory (tied weights) get memory of their own."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict().items():
        own = tensor.detach().cpu().contiguous()
        found[name] = own.clone() if own.untyped_storage().data_ptr() in seen else own
        seen.add(own.untyped_storage().data_ptr())
    return found


def write_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """A safetensors file with the permissions of any other new file (the library makes it private)."""
    path.touch()
    mode = path.stat().st_mode
    save_file(dict(tensors), path)
    path.chmod(mode)


def read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise SpanwiseError(f"{path}: cannot be read, it may be cut off: {error}") from None


def fill(model: nn.Module, path: Path) -> None:
    """Load weights into a model; what does not fit is an error, never ignored."""
    tensors = read_tensors(path)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        # The first line says only that there is an error; the next one says which.
        problem = " ".join(line.strip() for line in str(error).splitlines()[1:2])
        raise SpanwiseError(f"{path}: the weights do not fit the model: {problem}") from None
