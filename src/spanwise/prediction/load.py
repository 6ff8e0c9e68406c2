"""Load a trained model from a folder or the Hugging Face hub. Imports torch only for torch models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spanwise.core.errors import SpanwiseError
from spanwise.prediction.base import BasePredictor
from spanwise.runs.folder import RunFolder

if TYPE_CHECKING:
    from spanwise.prediction.predictor import Predictor


def load(source: str | Path, device: str = "auto", *, maps_weights: bool = False) -> BasePredictor:
    """Load a model for prediction from a run folder, an exported folder or the hub (``hf:owner/model``).

    A model exported to ONNX runs in onnxruntime and does not import torch. Loading never executes
    code of the model. ``maps_weights`` lets several processes on a CPU share the weights in memory.
    """
    folder = model_folder(source)
    if not RunFolder(folder).is_onnx:
        return load_torch(folder, device, maps_weights=maps_weights, only_predicts=True)
    from spanwise.prediction.onnx.predictor import OnnxPredictor

    return OnnxPredictor(folder, device)


def load_torch(
    source: str | Path, device: str = "auto", *, maps_weights: bool = False, only_predicts: bool = False
) -> Predictor:  # fmt: skip
    """Load a torch model, for callers that need its encoder and head."""
    from spanwise.models.model import Model
    from spanwise.prediction.predictor import Predictor

    return Predictor(Model.load(model_folder(source), maps_weights=maps_weights, only_predicts=only_predicts), device)


def model_folder(source: str | Path) -> Path:
    """Return the local folder of a model; download it if ``source`` is a hub name (``hf:owner/model``)."""
    from spanwise.runtime.hub import download_model, hub_name

    if name := hub_name(source):
        return download_model(name)
    folder = Path(source).expanduser()
    if not folder.exists():
        is_like_name = isinstance(source, str) and source.count("/") == 1 and not source.startswith((".", "/", "~"))
        hint = f"; for a model on the Hugging Face hub, pass hf:{source}" if is_like_name else ""
        raise SpanwiseError(f"{source}: no such folder{hint}")
    return folder
