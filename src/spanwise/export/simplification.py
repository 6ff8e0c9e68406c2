"""Graphs that load faster: simplified once at export instead of whenever a process loads the model."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

MAX_BYTES = 1 << 30  # a file of a graph is limited to 2 GiB
MAX_GROWTH = 1.02  # a constant that is computed at export may be larger than what it is computed from


def simplify_graphs(folder: Path) -> None:
    """Fold constants and remove redundant nodes in all graphs of an exported model.

    These are the basic optimisations of onnxruntime. They use standard operators only, so the graphs
    run on any device; faster ones for the device are still chosen when a graph is loaded.
    """
    for path in sorted(folder.rglob("*.onnx")):
        if path.stat().st_size <= MAX_BYTES:
            _simplify(path)


def _simplify(path: Path) -> None:
    import onnxruntime

    with TemporaryDirectory(dir=path.parent) as work:
        simplified = Path(work) / path.name
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(simplified)
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        if simplified.stat().st_size <= MAX_GROWTH * path.stat().st_size:
            simplified.replace(path)
