"""ONNX graphs of encoders for tests: most of them export the same encoder with different heads."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from torch import Tensor, nn

from spanwise.export import graphs


@contextmanager
def trace_equal_encoders_once(folder: Path) -> Iterator[None]:
    """Copy the graph of an encoder from ``folder`` if an encoder with the same layers, settings and weights was traced."""
    trace = graphs._trace

    def trace_or_copy(module: nn.Module, inputs: Mapping[str, Tensor], outputs: Sequence[str], path: Path) -> None:
        if not isinstance(module, graphs.TracedEncoder):
            trace(module, inputs, outputs, path)
            return
        known = folder / _digest(module, inputs)
        if not known.exists():
            trace(module, inputs, outputs, known)
        shutil.copyfile(known, path)

    with patch.object(graphs, "_trace", trace_or_copy):
        yield


def _digest(module: graphs.TracedEncoder, inputs: Mapping[str, Tensor]) -> str:
    encoder = module.encoder
    shapes = {name: tuple(value.shape) for name, value in inputs.items()}
    described = (str(module), encoder.settings, getattr(encoder, "lower_layers", 0), shapes)
    digest = hashlib.sha256(repr(described).encode())
    for name, tensor in module.state_dict().items():
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()
