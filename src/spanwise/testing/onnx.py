"""Check of the ONNX export."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from spanwise.core.errors import SpanwiseError
from spanwise.export.onnx import write
from spanwise.export.torch_folder import export
from spanwise.models.model import Model
from spanwise.prediction.onnx.predictor import OnnxPredictor
from spanwise.prediction.predictor import Predictor
from spanwise.testing.sentences import TEST_SENTENCES
from spanwise.training.run import Run

TOLERANCE = 1e-4


def check_onnx(run: Run, folder: Path) -> None:
    """The exported model gives the same predictions, or the head declares why it cannot be exported."""
    graph = run.model.head.prediction_head.onnx
    if isinstance(graph, str):
        assert graph.strip(), "Head.onnx must be a graph or a reason"
        return
    if not all(map(find_spec, ("onnx", "onnxruntime"))):
        return
    (folder / "onnx").mkdir(parents=True)
    export(run.folder, folder / "model")
    model = Model.load(folder / "model")
    try:
        write(model, folder / "onnx")
    except SpanwiseError as error:
        raise AssertionError(f"the head declares an ONNX graph, but the export fails: {error}") from error
    expected = Predictor(model, "cpu").predict(TEST_SENTENCES)
    actual = OnnxPredictor(folder / "onnx", "cpu").predict(TEST_SENTENCES)
    assert actual == expected, "the predictions of the ONNX graph differ"
    scores = [[entity.score or 0.0 for sentence in output for entity in sentence.entities] for output in (actual, expected)]
    assert np.allclose(scores[0], scores[1], rtol=0, atol=TOLERANCE), "the scores of the ONNX graph differ"
