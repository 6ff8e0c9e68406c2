"""Export of a trained model to ONNX, checked against the predictions of the model."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.data import bundled_corpus
from spanwise.encoders.static import StaticEncoder
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.evaluation import evaluate
from spanwise.export.graphs import single_encoders, write_graphs
from spanwise.export.record import exportable_encoder, head_graph, make_record
from spanwise.export.torch_folder import export
from spanwise.files.writing import atomic_output
from spanwise.models.model import Model
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.onnx.predictor import OnnxPredictor
from spanwise.prediction.onnx.record import ENCODER, TOKENIZER
from spanwise.prediction.predictor import Predictor
from spanwise.prediction.scoring import check_split, predict_split
from spanwise.runs.folder import RunFolder

MAX_SCORE_DIFFERENCE = 1e-3  # scores of float32 graphs usually differ by about 1e-6
MAX_DIFFERING_SHARE = 1e-3  # of all entities: between two equal scores, rounding decides


@dataclass(frozen=True)
class OnnxExport:
    """An exported model and how its predictions compare with the original's.

    Both predict ``sentences`` sentences of ``data``. ``f1`` holds the F1 of the model and of the
    export, if the data has gold annotations.
    """

    kind: str
    precision: str
    size: int  # bytes
    data: str
    sentences: int
    entities: int  # predicted by the model
    common: int  # predicted by both
    extra: int  # predicted by the export only
    score_difference: float  # maximum over the common entities
    f1: tuple[float, float] | None

    @property
    def is_same(self) -> bool:
        return self.common == self.entities and not self.extra


def export_onnx(run: str | Path, out: str | Path, *, int8: bool = False, data: str | Path | None = None) -> OnnxExport:
    """Write the model of a run folder as ONNX graphs to a new folder, which ``load`` reads without torch.

    ``int8`` stores the encoder's weights in 8 bits; the head stays in float32. The export is compared
    with the model on the test split of ``data`` or on the bundled corpus. A float32 export with other
    predictions is an error, and nothing is written.
    """
    _require_onnx()
    if data is not None:
        check_split(data)
    with atomic_output(Path(out), is_folder=True) as temporary, TemporaryDirectory() as folder:
        # Loaded again, the encoder outputs only the layers that the prediction head reads.
        export(run, Path(folder) / "model")
        model = Model.load(Path(folder) / "model")
        write(model, temporary, int8=int8)
        expected, model_f1 = _predict(Predictor(model, "cpu"), data)
        exported, onnx_f1 = _predict(OnnxPredictor(temporary, "cpu"), data)
        result = OnnxExport(
            kind=model.config.head["kind"],
            precision="int8" if int8 else "float32",
            size=sum(path.stat().st_size for path in temporary.rglob("*") if path.is_file()),
            data="the bundled corpus" if data is None else str(data),
            sentences=len(expected),
            **_compare(expected, exported),
            f1=None if model_f1 is None or onnx_f1 is None else (model_f1, onnx_f1),
        )
        differing = result.entities - result.common + result.extra
        has_other_scores = result.score_difference > MAX_SCORE_DIFFERENCE
        if not int8 and (has_other_scores or differing > MAX_DIFFERING_SHARE * max(result.entities, 1)):
            raise SpanwiseError(
                f"the ONNX graph and the model disagree: {differing} of {result.entities} entities in {result.data} differ, "
                f"and scores differ by up to {result.score_difference:.2g}"
            )
    return result


def write(model: Model, folder: Path, *, int8: bool = False) -> None:
    """Write the graphs of a model and the other files that ``OnnxPredictor`` reads."""
    precision: Literal["float32", "int8"] = "int8" if int8 else "float32"
    graph = head_graph(model.head)
    encoder = exportable_encoder(model.encoder, precision)
    record = make_record(encoder, model.head, graph, precision).model_copy(
        update={"thresholds": model.config.thresholds, "calibration": model.config.calibration}
    )
    run = RunFolder(folder)
    run.config_file.write_text(model.config.to_yaml(), encoding="utf-8")
    run.labels_file.write_text(json.dumps(model.labels.to_json(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    run.onnx_file.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    for single, part in single_encoders(encoder, folder):
        part.mkdir(parents=True, exist_ok=True)
        if isinstance(single, TransformerEncoder):
            single.indexer.tokenize.tokenizer.save(str(part / TOKENIZER))
        elif isinstance(single, StaticEncoder):
            single.save(part)
    try:
        write_graphs(encoder, model.head, graph, folder)
    except (RuntimeError, ValueError, TypeError) as error:  # the exporter does not support an operation
        kind = encoder.model.config.model_type if isinstance(encoder, TransformerEncoder) else model.config.encoder["kind"]
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SpanwiseError(f"a {kind} encoder with this head has no ONNX graph: {reason}") from None
    if int8:
        for single, part in single_encoders(encoder, folder):
            if isinstance(single, TransformerEncoder):
                _quantize(part / ENCODER)


def _quantize(path: Path) -> None:
    """Quantize weights to 8 bits and activations dynamically. Norms, attention products and sums stay in float32.

    Each column of a weight has its own scale. ``reduce_range`` uses 7 of the 8 bits: without it, sums
    overflow on processors without VNNI, and scores are no better (NCBI, MiniLM).
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.getLogger().addFilter(_is_error)
    try:
        quantize_dynamic(path, path, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
    finally:
        logging.getLogger().removeFilter(_is_error)


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno > logging.WARNING


def _predict(predictor: BasePredictor, data: str | Path | None) -> tuple[list[Sentence], float | None]:
    if data is None:
        return predictor.predict(bundled_corpus()["test"]), None
    split = predict_split(predictor, data)
    return split.predicted, evaluate(split.gold, split.predicted).f1


def _compare(expected: Iterable[Sentence], exported: Iterable[Sentence]) -> dict[str, Any]:
    entities, common, extra, difference = 0, 0, 0, 0.0
    for expected_sentence, exported_sentence in zip(expected, exported, strict=True):
        old, new = _scores(expected_sentence.entities), _scores(exported_sentence.entities)
        both = old.keys() & new.keys()
        entities, common, extra = entities + len(old), common + len(both), extra + len(new) - len(both)
        difference = max([difference, *(abs(old[entity] - new[entity]) for entity in both)])
    return {"entities": entities, "common": common, "extra": extra, "score_difference": difference}


def _scores(entities: Iterable[Entity]) -> dict[Entity, float]:
    return {entity: entity.score or 0.0 for entity in entities}


def _require_onnx() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise SpanwiseError(f"export to ONNX requires {error.name}; run pip install 'spanwise[onnx]'") from None
