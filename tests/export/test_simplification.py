"""Graphs that are simplified at export."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spanwise.export.simplification import simplify_graphs

onnx = pytest.importorskip("onnx", reason="onnx is not installed; run pip install 'spanwise[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; run pip install 'spanwise[onnx]'")


def save(path: Path, nodes: list[object], size: int) -> None:
    """Save a graph from ``x`` to ``y`` with the constants ``one`` and ``size``."""
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None]) for name in ("x", "y")]
    constants = [onnx.numpy_helper.from_array(np.array([1.0], np.float32), "one")]
    constants += [onnx.numpy_helper.from_array(np.array([size]), "size")]
    graph = onnx.helper.make_graph(nodes, "test", values[:1], values[1:], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


def run(path: Path) -> list[float]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    result: list[float] = session.run(None, {"x": np.array([2.0], np.float32)})[0].tolist()
    return result


def test_constants_are_folded_unless_the_file_grows(tmp_path: Path) -> None:
    node = onnx.helper.make_node
    nodes = [node("Add", ["one", "one"], ["two"]), node("Add", ["two", "one"], ["three"]), node("Mul", ["x", "three"], ["y"])]
    (tmp_path / "part-0").mkdir()
    small, large = tmp_path / "part-0" / "encoder.onnx", tmp_path / "head.onnx"
    save(
        small,
        [
            *nodes[:2],
            *(node("Identity", [f"i{i}" if i else "x"], [f"i{i + 1}"]) for i in range(20)),
            node("Mul", ["i20", "three"], ["y"]),
        ],
        1,
    )
    save(large, [node("Expand", ["one", "size"], ["ones"]), node("Mul", ["x", "ones"], ["y"])], 5000)
    before = large.read_bytes()
    simplify_graphs(tmp_path)
    assert [item.op_type for item in onnx.load(small).graph.node] == ["Mul"]
    assert run(small) == [6.0]
    assert large.read_bytes() == before
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["encoder.onnx", "head.onnx"]
