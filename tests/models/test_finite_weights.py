"""Models with NaN or infinite weights are refused when they are loaded."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from safetensors.torch import load_file, save_file

from spanwise import SpanwiseError
from spanwise.prediction.load import load

REFUSED = r"contains? NaN or infinite numbers"


def damage(path: Path, value: float) -> str:
    """Replace one number of the last matrix; return the name of the matrix."""
    tensors = load_file(path)
    name = max(name for name, tensor in tensors.items() if tensor.ndim == 2)
    tensors[name][0, 0] = value
    save_file(tensors, path, metadata={"format": "pt"})
    return name


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_nan_weights_are_refused_when_a_model_is_loaded(tmp_path: Path, tiny_bert: Path, value: float) -> None:
    folder = tmp_path / "run"
    tiny.model("static").save(folder)
    load(folder, "cpu")
    name = damage(folder / "model.safetensors", value)
    with pytest.raises(SpanwiseError, match=REFUSED) as caught:
        load(folder, "cpu")
    assert str(folder / "model.safetensors") in str(caught.value)
    assert name in str(caught.value)
    shutil.copytree(tiny_bert, tmp_path / "bert")
    damage(tmp_path / "bert" / "model.safetensors", value)
    with pytest.raises(SpanwiseError, match=REFUSED):
        tiny.transformer(tmp_path / "bert")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_weights_are_refused_when_an_onnx_model_is_loaded(tmp_path: Path, value: float) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; run pip install 'spanwise[onnx]'")
    onnx = pytest.importorskip("onnx", reason="onnx is not installed; run pip install 'spanwise[onnx]'")
    from spanwise.export.onnx import write
    from spanwise.prediction.onnx.record import HEAD

    folder = tmp_path / "model"
    folder.mkdir()
    write(tiny.model("static").for_prediction(), folder)
    load(folder, "cpu")
    graph = onnx.load(folder / HEAD)
    weights = next(tensor for tensor in graph.graph.initializer if len(tensor.dims) == 2)
    values = onnx.numpy_helper.to_array(weights).copy()
    values[0, 0] = value
    weights.CopyFrom(onnx.numpy_helper.from_array(values, weights.name))
    onnx.save(graph, folder / HEAD)
    with pytest.raises(SpanwiseError, match=REFUSED) as caught:
        load(folder, "cpu")
    assert str(folder / HEAD) in str(caught.value)


def test_sums_that_overflow_are_no_reason_to_refuse(tmp_path: Path) -> None:
    from spanwise.runtime.tensors import check_finite

    check_finite({"large": torch.full((4,), 3e38), "half": torch.full((9,), 6e4, dtype=torch.half)}, tmp_path)
    check_finite({"integers": torch.arange(3), "empty": torch.zeros(0)}, tmp_path)
    with pytest.raises(SpanwiseError, match="half contains"):
        check_finite({"half": torch.tensor([1.0, np.nan], dtype=torch.half)}, tmp_path)
