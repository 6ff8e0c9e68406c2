"""A trained model put to work: load a run folder, predict text. torch comes in only with a model that needs it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spanwise.core.types import Sentence
from spanwise.decoding.thresholds import Threshold
from spanwise.inputs.texts import NEEDS_SPANS, Text, to_sentences
from spanwise.prediction.base import BasePredictor
from spanwise.runs.files import is_exported

if TYPE_CHECKING:
    from spanwise.models.model import Model

__all__ = ["NEEDS_SPANS", "Predictor", "Text", "load", "load_torch", "to_sentences"]


class Predictor(BasePredictor):
    """A model in torch, ready to predict."""

    def __init__(self, model: Model, device: str = "auto") -> None:
        from spanwise.prediction.predictor import proposing
        from spanwise.runtime.device import wants_cuda

        super().__init__()
        self.model = model.to("cuda" if wants_cuda(device) else "cpu").eval()
        self.types, self.needs_spans = model.labels.entities, model.needs_spans
        self.finds_relations = model.head.prediction_head.finds_relations
        self.relation_types = model.labels.relations if self.finds_relations else ()
        with proposing(model.head, 0.5) as own:
            self.own_threshold = own

    def find(
        self, sentences: Sequence[Sentence], around: Sequence[Sentence], *, threshold: Threshold, batch_size: int
    ) -> list[Sentence]:  # fmt: skip
        from spanwise.prediction.predictor import predict_chunk

        return predict_chunk(self.model, sentences, around, batch_size=batch_size, threshold=threshold)


def load(source: str | Path, device: str = "auto") -> BasePredictor:
    """The model of a run folder, or of a name on the Hugging Face hub, ready to predict.

    One that was exported to ONNX is run by onnxruntime, and torch is not even imported.
    """
    folder = model_folder(source)
    if not is_exported(folder):
        return load_torch(folder, device)
    from spanwise.prediction.onnx.predictor import OnnxPredictor

    return OnnxPredictor(folder, device)


def load_torch(source: str | Path, device: str = "auto") -> Predictor:
    """The same for those who look into the model itself: in torch."""
    from spanwise.models.model import Model

    return Predictor(Model.load(model_folder(source)), device)


def model_folder(source: str | Path) -> Path:
    """The folder of a model: the one that is named, or where the hub's files of this name ("owner/model") are kept here."""
    folder = Path(source).expanduser()
    is_name = isinstance(source, str) and source.count("/") == 1 and not source.startswith((".", "/", "~"))
    if folder.exists() or not is_name:
        return folder
    from spanwise.runtime.hub import fetched

    return fetched(str(source))
