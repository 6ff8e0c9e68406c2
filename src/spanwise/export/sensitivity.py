"""How much each matrix product of a graph loses if it alone is rounded to 8 bits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spanwise.export.quantization import weight_products
from spanwise.prediction.onnx.predictor import session

Floats: TypeAlias = npt.NDArray[np.float32]


def product_errors(path: Path, batch: Mapping[str, npt.NDArray[Any]]) -> dict[str, float]:
    """The relative squared error of the results of each product with weights on a batch, by the name of its node.

    ``batch`` are inputs of the graph. Inputs are rounded with one scale, weights with one per column.
    """
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(path)
    products = [(node.name, node.input[0], numpy_helper.to_array(weight)) for node, weight in weight_products(model)]
    inputs = list(dict.fromkeys(name for _, name, _ in products))
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in inputs)
    traced = path.with_name(f"{path.stem}.inputs.onnx")
    try:
        onnx.save(model, traced)
        values = dict(zip(inputs, session(traced).run(None, dict(batch)), strict=True))
    finally:
        traced.unlink(missing_ok=True)
    return {name: relative_error(values[given].reshape(-1, len(weight)), weight) for name, given, weight in products}


def relative_error(rows: Floats, weight: Floats) -> float:
    """The squared error of ``rows @ weight`` after rounding both, relative to the squared result.

    >>> exact = np.array([[127.0, -1.0]], np.float32), np.eye(2, dtype=np.float32)
    >>> relative_error(*exact) < 1e-4 < relative_error(np.array([[1e4, 1.0]], np.float32), exact[1] * [[0.001], [10]])
    True
    """
    low, high = min(rows.min(), 0.0), max(rows.max(), 0.0)
    scale = max(high - low, np.finfo(np.float32).tiny) / 255
    rounded_rows = np.rint(rows / scale) * scale
    scales = np.maximum(np.abs(weight).max(0), np.finfo(np.float32).tiny) / 64
    rounded_weight = np.rint(weight / scales) * scales
    exact = rows @ weight
    error = np.square(rounded_rows @ rounded_weight - exact).mean()
    return float(error / max(np.square(exact).mean(), np.finfo(np.float32).tiny))
