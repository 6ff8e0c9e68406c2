"""Exporting a trained model to ONNX, and comparing what it finds with what the model itself finds."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.data import bundled_corpus
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.evaluation import evaluate
from spanwise.export.graphs import write_graphs
from spanwise.export.support import described
from spanwise.export.torch_folder import export
from spanwise.files.writing import atomic_output
from spanwise.heads.pointer import Pointer
from spanwise.models.model import Model
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.load import Predictor
from spanwise.prediction.onnx.predictor import OnnxPredictor
from spanwise.prediction.onnx.record import ENCODER, TOKENIZER
from spanwise.prediction.scoring import predict_split
from spanwise.runs.files import CONFIG, LABELS, ONNX_RECORD

TOLERANCE = 1e-3  # of scores: those of float32 graphs differ by about a thousandth of this
RARE = 1e-3  # of all entities, so many may differ: where two scores are the same but for rounding, either may win


@dataclass(frozen=True)
class Exported:
    """What was written, and how it compares with the model it was made of, on ``sentences`` sentences of ``data``.

    ``found`` entities are those of the model itself, ``common`` those that both find; the scores of these differ by at most
    ``difference``. ``f1`` are the F1 of the model and of what was written, where there is gold.
    """

    kind: str
    precision: str
    size: int  # bytes
    data: str
    sentences: int
    found: int
    common: int
    extra: int  # that only the exported model finds
    difference: float
    f1: tuple[float, float] | None

    @property
    def is_same(self) -> bool:
        return self.common == self.found and not self.extra


def export_onnx(run: str | Path, out: str | Path, *, int8: bool = False, data: str | Path | None = None) -> Exported:
    """Write a run folder's model as ONNX graphs to a new folder, which ``load`` reads without torch.

    ``int8`` keeps the encoder's weights in 8 bits; the head stays in float32. What is written is compared with the model on
    the test split of ``data``, or on sentences that come with the package. A float32 graph that finds something else is an
    error, and nothing is written.
    """
    _needs_onnx()
    with atomic_output(Path(out), folder=True) as temporary, TemporaryDirectory() as folder:
        export(run, Path(folder) / "model")  # loaded again, its encoder gives no more than the head that predicts reads
        model = Model.load(Path(folder) / "model")
        write(model, temporary, int8=int8)
        before, f1 = _predicted(Predictor(model, "cpu"), data)
        after, new_f1 = _predicted(OnnxPredictor(temporary, "cpu"), data)
        done = Exported(
            kind=model.config.head["kind"],
            precision="int8" if int8 else "float32",
            size=sum(path.stat().st_size for path in temporary.iterdir()),
            data="the bundled corpus" if data is None else str(data),
            sentences=len(before),
            **_compared(before, after),
            f1=None if f1 is None or new_f1 is None else (f1, new_f1),
        )
        differing = done.found - done.common + done.extra
        if not int8 and (done.difference > TOLERANCE or differing > RARE * max(done.found, 1)):
            raise SpanwiseError(
                f"the graph does not compute what the model does: {differing} of {done.found} entities in {done.data} differ, "
                f"and scores by up to {done.difference:.2g}"
            )
    return done


def write(model: Model, folder: Path, *, int8: bool = False) -> None:
    """The graphs of a model and all that ``OnnxPredictor`` needs besides them."""
    head = model.head
    encoder, record = described(model.encoder, head, "int8" if int8 else "float32")
    settings = head.inner.settings
    if getattr(settings, "chunk", None) is not None:  # a way to save memory in training
        head.inner.settings = settings.model_copy(update={"chunk": None})
    (folder / CONFIG).write_text(model.config.to_yaml(), encoding="utf-8")
    (folder / LABELS).write_text(json.dumps(model.labels.to_json(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (folder / ONNX_RECORD).write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    if isinstance(encoder, TransformerEncoder):
        encoder.rows.tokenize.tokenizer.save(str(folder / TOKENIZER))
    else:
        encoder.save(folder)
    try:
        write_graphs(encoder, head, record, folder, has_threshold=isinstance(head.inner, Pointer))
    except (RuntimeError, ValueError, TypeError) as error:  # of the exporter: an operation that it does not know
        kind = encoder.model.config.model_type if isinstance(encoder, TransformerEncoder) else "static"
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SpanwiseError(f"a {kind} encoder with this head has no ONNX graph: {first}") from None
    finally:
        head.inner.settings = settings
        if record.threshold is not None:
            head.set_threshold(record.threshold)
    if int8:
        _quantize(folder / ENCODER)


def _quantize(path: Path) -> None:
    """Weights in 8 bits, values rounded as they come (dynamically). Norms, products of attention and sums stay in float32.

    Each column of a weight has a scale of its own, and one of the 8 bits is left free: without it sums overflow on processors
    that have no VNNI, and the scores are no better (NCBI, MiniLM).
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.getLogger().addFilter(_silent)
    try:
        quantize_dynamic(path, path, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
    finally:
        logging.getLogger().removeFilter(_silent)


def _silent(record: logging.LogRecord) -> bool:
    return record.levelno > logging.WARNING


def _predicted(predictor: BasePredictor, data: str | Path | None) -> tuple[list[Sentence], float | None]:
    if data is None:
        return predictor.predict(bundled_corpus()["test"]), None
    done = predict_split(predictor, data)
    return done.predicted, evaluate(done.gold, done.predicted).f1


def _compared(before: Iterable[Sentence], after: Iterable[Sentence]) -> dict[str, Any]:
    found, common, extra, difference = 0, 0, 0, 0.0
    for one, other in zip(before, after, strict=True):
        old, new = _scores(one.entities), _scores(other.entities)
        both = old.keys() & new.keys()
        found, common, extra = found + len(old), common + len(both), extra + len(new) - len(both)
        difference = max([difference, *(abs(old[entity] - new[entity]) for entity in both)])
    return {"found": found, "common": common, "extra": extra, "difference": difference}


def _scores(entities: Iterable[Entity]) -> dict[Entity, float]:
    return {entity: entity.score or 0.0 for entity in entities}


def _needs_onnx() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise SpanwiseError(f"exporting to ONNX needs {error.name}: pip install 'spanwise[onnx]'") from None
