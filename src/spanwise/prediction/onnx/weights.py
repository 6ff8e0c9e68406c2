"""Check the weights of an ONNX file, without the onnx package and without loading them twice.

An ONNX file is a protocol buffer. Of its many fields only these are read: ``ModelProto.graph`` (7),
``GraphProto.initializer`` (5), and of each tensor its type (2), name (8), ``float_data`` (4) and
``raw_data`` (9). Graphs use infinity as a constant for masks: a scalar, or a mask of 0 and minus infinity.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spanwise.core.errors import SpanwiseError

GRAPH, INITIALIZER = 7, 5
TYPE, FLOAT_DATA, NAME, RAW_DATA = 2, 4, 8, 9
FLOATS: dict[int, npt.DTypeLike] = {1: "<f4", 10: "<f2", 11: "<f8"}  # TensorProto.DataType


def check_weights(path: Path) -> None:
    """Raise ``SpanwiseError`` if a weight of a graph is NaN or infinite. Files that are no graphs pass."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
            try:
                name = _find_damaged(view)
            except (IndexError, ValueError):  # truncated; onnxruntime reports it
                return
    if name is not None:
        raise SpanwiseError(f"{path}: the weight {name} contains NaN or infinite numbers; the file is damaged, export it again")


def _find_damaged(model: memoryview) -> str | None:
    for graph_field, graph in _fields(model):
        for field, tensor in _fields(graph) if graph_field == GRAPH and isinstance(graph, memoryview) else ():
            if field == INITIALIZER and isinstance(tensor, memoryview):
                values = dict(_fields(tensor))
                if not _is_valid(values):
                    name = values.get(NAME, b"")
                    return bytes(name).decode(errors="replace") if not isinstance(name, int) else "?"
    return None


def _is_valid(tensor: dict[int, int | memoryview]) -> bool:
    kind, raw = tensor.get(TYPE), tensor.get(RAW_DATA, tensor.get(FLOAT_DATA))
    if not isinstance(kind, int) or kind not in FLOATS or not isinstance(raw, memoryview):
        return True
    numbers = np.frombuffer(raw, FLOATS[kind])
    if len(numbers) == 1:
        return not np.isnan(numbers).any()
    return bool(np.isfinite(numbers).all()) or is_mask(numbers)


def is_mask(numbers: npt.NDArray[np.floating[Any]]) -> bool:
    """Whether an array is a mask that is added to attention scores.

    >>> is_mask(np.array([0.0, -np.inf])), is_mask(np.array([-np.inf, -np.inf])), is_mask(np.array([0.5, -np.inf]))
    (True, False, False)
    """
    return bool(((numbers == 0) | np.isneginf(numbers)).all() and (numbers == 0).any())


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the numbers and values of the fields of a message."""
    position, size = 0, len(message)
    while position < size:
        key, position = _varint(message, position)
        wire = key & 7
        if wire == 0:
            value, position = _varint(message, position)
            yield key >> 3, value
            continue
        length = {1: 8, 5: 4}.get(wire, 0)
        if wire == 2:
            length, position = _varint(message, position)
        if (not length and wire != 2) or position + length > size:
            raise ValueError
        yield key >> 3, message[position : position + length]
        position += length


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError
