"""The inputs of the matrix products of a graph on sample sentences, for which weights are rounded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spanwise.export.rounding import Floats
from spanwise.prediction.onnx.predictor import session


def product_inputs(path: Path, names: list[str], batch: Mapping[str, npt.NDArray[Any]]) -> dict[str, Floats]:
    """The tensors ``names`` of a graph on a batch, as rows [R, K] without those of padding.

    ``batch`` has the inputs of the graph; ``seen`` among them is the mask of real subwords.
    """
    import onnx
    from onnx import helper

    model = onnx.load(path)
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names)
    traced = path.with_name(f"{path.stem}.inputs.onnx")
    try:
        onnx.save(model, traced)
        values = session(traced).run(None, dict(batch))
    finally:
        traced.unlink(missing_ok=True)
    return {name: _rows(value, batch["seen"]) for name, value in zip(names, values, strict=True)}


def _rows(value: Floats, seen: npt.NDArray[np.bool_]) -> Floats:
    return value[seen] if value.shape[:2] == seen.shape else value.reshape(-1, value.shape[-1])
