"""Load a trained model: from a folder, an installed package or the hub. Imports torch only for torch models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spanwise.core.errors import SpanwiseError, missing_torch
from spanwise.prediction.base import BasePredictor
from spanwise.runs.folder import RunFolder
from spanwise.runs.installed import installed_folder, suggest_installed

if TYPE_CHECKING:
    from spanwise.prediction.predictor import Predictor


def load(source: str | Path, device: str = "auto", *, maps_weights: bool = False) -> BasePredictor:
    """Load a model for prediction.

    ``spanwise.load("RUN").predict("The Bank of Japan is in Tokyo.")`` returns the sentences of the text
    with their entities; see ``BasePredictor.predict``.

    ``source`` is a run folder, an exported folder, the name of an installed model package
    (``en-biomed``), or a model on the Hugging Face hub (``hf:owner/model``). A folder is preferred to
    an installed model of the same name.

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
    try:
        from spanwise.models.model import Model
        from spanwise.prediction.predictor import Predictor
    except ModuleNotFoundError as error:
        raise missing_torch(error, f"{source}: this model") or error from None

    folder = model_folder(source)
    predictor = Predictor(Model.load(folder, maps_weights=maps_weights, only_predicts=only_predicts), device)
    predictor.folder = folder
    return predictor


def model_folder(source: str | Path) -> Path:
    """Return the folder of a model: a folder, that of an installed model, or a download of ``hf:owner/model``."""
    from spanwise.runtime.hub import download_model, hub_name

    if name := hub_name(source):
        return download_model(name)
    folder = Path(source).expanduser()
    if folder.exists():
        return folder
    name = str(source)
    is_name = len(folder.parts) == 1 and "/" not in name
    if is_name and (installed := installed_folder(name)):
        return installed
    is_like_hub_name = name.count("/") == 1 and not name.startswith((".", "/", "~"))
    hint = f"; for a model on the Hugging Face hub, pass hf:{source}" if isinstance(source, str) and is_like_hub_name else ""
    raise SpanwiseError(f"{source}: no such folder{hint or (suggest_installed(name) if is_name else '')}")
