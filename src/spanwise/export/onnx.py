"""Export of a trained model to ONNX, checked against the predictions of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spanwise.core.errors import SpanwiseError, first_line
from spanwise.core.types import Sentence
from spanwise.data import bundled_corpus
from spanwise.encoders.static import StaticEncoder
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.export.choice import choose_quantization, find_dev_data, quantize_safely, score_f1
from spanwise.export.graphs import single_encoders, write_graphs
from spanwise.export.record import (
    check_quantizable,
    exportable_encoder,
    head_graph,
    make_record,
    save_quantization,
    write_record,
)
from spanwise.export.simplification import simplify_graphs
from spanwise.export.torch_folder import export
from spanwise.files.writing import atomic_output, to_readable_json
from spanwise.models.model import Model
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.onnx.predictor import OnnxPredictor
from spanwise.prediction.onnx.record import FLOAT32, TOKENIZER, QuantizationRecord
from spanwise.prediction.predictor import Predictor
from spanwise.prediction.scoring import check_split, predict_split
from spanwise.runs.folder import RunFolder
from spanwise.runs.provenance import Provenance

MAX_LOSS = 0.3  # points of F1 that quantisation may lose on dev
MAX_SCORE_DIFFERENCE = 1e-3  # scores of float32 graphs usually differ by about 1e-6
MAX_DIFFERING_SHARE = 1e-3  # of all entities: between two equal scores, rounding decides


@dataclass(frozen=True)
class OnnxExport:
    """An exported model and how its predictions compare with the original's.

    Both predict ``sentences`` sentences of ``data``. ``f1`` holds the F1 of the model and of the
    export, if the data has gold annotations; with relations, the mean of both F1.
    """

    kind: str
    size: int  # bytes
    data: str
    sentences: int
    entities: int  # and relations, predicted by the model
    common: int  # predicted by both
    extra: int  # predicted by the export only
    score_difference: float  # maximum over the common entities
    f1: tuple[float, float] | None
    finds_relations: bool
    quantization: QuantizationRecord | None  # None in float32

    @property
    def precision(self) -> str:
        return FLOAT32 if self.quantization is None else self.quantization.precision

    @property
    def is_same(self) -> bool:
        return self.common == self.entities and not self.extra


def export_onnx(
    run: str | Path,
    out: str | Path,
    *,
    int8: bool = False,
    data: str | Path | None = None,
    dev: str | Path | None = None,
    max_loss: float = MAX_LOSS,
    log: Callable[[str], None] = lambda line: None,
) -> OnnxExport:
    """Write the model of a run folder as ONNX graphs to a new folder, which ``load`` reads without torch.

    The export is compared with the model on the test split of ``data`` or on the bundled corpus. A
    float32 graph with other predictions is an error, and nothing is written.

    ``int8`` stores the weights of transformers in 8 bits; the head stays in float32. The quantisation
    is chosen on ``dev``, or on the dev split of ``data``: the fastest one that loses at most
    ``max_loss`` points of F1. ``log`` receives what was tried. Without dev data, all products
    are computed in blocks.
    """
    _require_onnx()
    if not 0 <= max_loss <= 100:
        raise SpanwiseError(f"max loss {max_loss:g}: expected points of F1, from 0 to 100")
    if data is not None:
        check_split(data)
    dev_data = find_dev_data(dev, data) if int8 else None
    with atomic_output(Path(out), is_folder=True) as temporary, TemporaryDirectory() as folder:
        # Loaded again, the encoder outputs only the layers that the prediction head reads.
        export(run, Path(folder) / "model")
        model = Model.load(Path(folder) / "model")
        if int8:
            check_quantizable(model.encoder)
        write(model, temporary)
        Provenance.read(Path(run)).write(temporary)
        predictor = Predictor(model, "cpu")
        predictor.folder = Path(run)
        expected, model_f1 = _predict(predictor, data)
        if not int8:
            simplify_graphs(temporary)
        exported, onnx_f1 = _predict(OnnxPredictor(temporary, "cpu"), data)
        comparison = _compare(expected, exported)
        source = "the bundled corpus" if data is None else str(data)
        _check_same(comparison, source)
        quantization = None
        if int8:
            quantization = (
                quantize_safely(temporary) if dev_data is None else choose_quantization(temporary, dev_data, max_loss, log)
            )
            save_quantization(temporary, quantization)
            simplify_graphs(temporary)
            exported, onnx_f1 = _predict(OnnxPredictor(temporary, "cpu"), data)
            comparison = _compare(expected, exported)
        return OnnxExport(
            kind=model.config.head["kind"],
            size=sum(path.stat().st_size for path in temporary.rglob("*") if path.is_file()),
            data=source,
            sentences=len(expected),
            **comparison,
            finds_relations=model.head.finds_relations,
            f1=None if model_f1 is None or onnx_f1 is None else (model_f1, onnx_f1),
            quantization=quantization,
        )


def _check_same(comparison: Mapping[str, Any], source: str) -> None:
    entities, difference = comparison["entities"], comparison["score_difference"]
    differing = entities - comparison["common"] + comparison["extra"]
    if difference > MAX_SCORE_DIFFERENCE or differing > MAX_DIFFERING_SHARE * max(entities, 1):
        raise SpanwiseError(
            f"the ONNX graph and the model disagree: {differing} of {entities} entities in {source} differ, "
            f"and scores differ by up to {difference:.2g}"
        )


def write(model: Model, folder: Path) -> None:
    """Write the graphs of a model in float32 and the other files that ``OnnxPredictor`` reads."""
    graph = head_graph(model.head)
    encoder = exportable_encoder(model.encoder)
    record = make_record(encoder, model.head, graph).model_copy(
        update={"thresholds": model.config.thresholds, "calibration": model.config.calibration}
    )
    run = RunFolder(folder)
    run.config_file.write_text(model.config.to_yaml(), encoding="utf-8")
    run.labels_file.write_text(to_readable_json(model.labels.to_json()), encoding="utf-8")
    write_record(record, folder)
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
        raise SpanwiseError(f"a {kind} encoder with this head has no ONNX graph: {first_line(error)}") from None


def _predict(predictor: BasePredictor, data: str | Path | None) -> tuple[list[Sentence], float | None]:
    if data is None:
        return predictor.predict(bundled_corpus()["test"]), None
    split = predict_split(predictor, data)
    return split.predicted, score_f1(split.gold, split.predicted, finds_relations=predictor.finds_relations)


def _compare(expected: Iterable[Sentence], exported: Iterable[Sentence]) -> dict[str, Any]:
    entities, common, extra, difference = 0, 0, 0, 0.0
    for expected_sentence, exported_sentence in zip(expected, exported, strict=True):
        old, new = _scores(expected_sentence), _scores(exported_sentence)
        both = old.keys() & new.keys()
        entities, common, extra = entities + len(old), common + len(both), extra + len(new) - len(both)
        difference = max([difference, *(abs(old[entity] - new[entity]) for entity in both)])
    return {"entities": entities, "common": common, "extra": extra, "score_difference": difference}


def _scores(sentence: Sentence) -> dict[Any, float]:
    """The scores of all entities, and of all relations between them."""
    entities = {entity: entity.score or 0.0 for entity in sentence.entities}
    relations = {
        (relation.type, sentence.entities[relation.head], sentence.entities[relation.tail]): relation.score or 0.0
        for relation in sentence.relations
    }
    return {**entities, **relations}


def _require_onnx() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise SpanwiseError(f"export to ONNX requires {error.name}; run pip install 'spanwise[onnx]'") from None
