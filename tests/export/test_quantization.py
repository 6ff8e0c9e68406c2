"""8-bit graphs of transformers, and the choice among them on dev."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import bert, model, sentences

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.models.model import Model
from spanwise.prediction.predictor import Predictor

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; run pip install 'spanwise[onnx]'")
onnx = pytest.importorskip("onnx", reason="onnx is not installed; run pip install 'spanwise[onnx]'")

from spanwise.export import choice  # noqa: E402
from spanwise.export.choice import DevData, choose_quantization, find_dev_data, quantize_safely  # noqa: E402
from spanwise.export.onnx import write  # noqa: E402
from spanwise.export.quantization import product_names, quantize, quantize_blocks  # noqa: E402
from spanwise.export.sensitivity import product_errors  # noqa: E402
from spanwise.prediction.onnx.predictor import OnnxPredictor, session  # noqa: E402
from spanwise.prediction.onnx.record import read_record  # noqa: E402

NAMES = ["a scale per column", "a quarter in blocks", "half in blocks", "all in blocks"]


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random BERT with three layers, which have 18 products."""
    return bert(tmp_path_factory.mktemp("encoders") / "bert")


def with_outlier(tiny_bert: Path, factor: float) -> Model:
    """A model with one large activation, which the next layer scales down again."""
    built = model(tiny_bert, "spanner")
    assert isinstance(built.encoder, TransformerEncoder)
    layer = built.encoder.model.encoder.layer[0]
    with torch.no_grad():
        layer.intermediate.dense.weight[0] *= factor
        layer.intermediate.dense.bias[0] = 3.0 * factor
        layer.output.dense.weight[:, 0] /= factor
    return built


def exported(built: Model, folder: Path) -> tuple[Path, DevData]:
    """The float32 export of a model, and sentences with its predictions as gold."""
    folder.mkdir()
    write(built, folder)
    gold = Predictor(built, "cpu").predict(sentences(60, seed=4))
    return folder, DevData.of(Corpus({"dev": tuple(gold)}), "dev", "predictions")


def test_the_first_candidate_that_is_close_enough_is_chosen(tiny_bert: Path, tmp_path: Path) -> None:
    """One scale for all inputs of a product is too coarse for an outlier; a scale for each block is enough."""
    folder, dev = exported(with_outlier(tiny_bert, 30.0), tmp_path / "model")
    lines: list[str] = []
    record = choose_quantization(folder, dev, 4.0, lines.append)
    assert [tried.name for tried in record.tried] == ["float32", *NAMES[:2]]
    assert record.chosen == NAMES[1]
    assert record.tried[0].f1 == 100.0
    assert record.tried[1].loss > 5.0 > 3.0 > record.tried[2].loss
    assert len(lines) == 2 + len(record.tried)
    operators = {node.op_type for node in onnx.load(folder / "encoder.onnx").graph.node}
    assert operators >= {"MatMulInteger", "MatMulNBits", "LayerNormalization"}
    blocks = [node.name for node in onnx.load(folder / "encoder.onnx").graph.node if node.op_type == "MatMulNBits"]
    assert "/model/encoder/layer.0/output/dense/MatMul" in blocks


def test_sensitive_products_stay_in_float32(tiny_bert: Path, tmp_path: Path) -> None:
    """A larger outlier also spoils its block, so that only the last candidate is close enough."""
    folder, dev = exported(with_outlier(tiny_bert, 1000.0), tmp_path / "model")
    record = choose_quantization(folder, dev, 4.0, lambda line: None)
    assert record.chosen == "blocks, a quarter and embeddings in float32"
    assert min(tried.loss for tried in record.tried[1:-1]) > 20
    products = {node.name: node.op_type for node in onnx.load(folder / "encoder.onnx").graph.node}
    assert products["/model/encoder/layer.0/output/dense/MatMul"] == "MatMul"
    assert products["/model/encoder/layer.2/attention/self/query/MatMul"] == "MatMulNBits"


def test_float32_is_the_last_resort(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, dev = exported(with_outlier(tiny_bert, 30.0), tmp_path / "model")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr(choice, "CANDIDATES", choice.CANDIDATES[:1])
    record = choose_quantization(folder, dev, 0.0, lambda line: None)
    assert (record.chosen, record.precision, len(record.tried)) == ("float32", "float32", 2)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_without_dev_data_the_most_exact_quantisation_is_used(tiny_bert: Path, tmp_path: Path) -> None:
    folder, dev = exported(model(tiny_bert, "spanner"), tmp_path / "model")
    head, exact = (folder / "head.onnx").read_bytes(), session(folder / "encoder.onnx")
    record = quantize_safely(folder)
    assert (record.chosen, record.tried, record.precision) == ("all in blocks, embeddings in float32", (), "int8")
    assert (folder / "head.onnx").read_bytes() == head
    operators = [node.op_type for node in onnx.load(folder / "encoder.onnx").graph.node]
    assert operators.count("MatMulNBits") == 18  # three layers with six products
    ids = np.arange(40).reshape(2, 20)
    inputs = {"ids": ids, "seen": ids < 35}
    states, rounded = (graph.run(None, inputs)[0] for graph in (exact, session(folder / "encoder.onnx")))
    assert 0 < np.abs(states - rounded).max() < 0.05 * np.abs(states).max()
    assert OnnxPredictor(folder, "cpu").predict(dev.sentences)
    assert read_record(folder).precision == "float32"  # the record is written by export_onnx


def test_blocks_of_weights_of_any_size() -> None:
    weight = np.random.default_rng(0).normal(size=(70, 5)).astype(np.float32)
    weight[40] *= 100  # changes the scale of its block only
    values, scales = quantize_blocks(weight)
    assert (values.shape, scales.shape) == ((5, 3, 32), (15,))
    restored = ((values.astype(np.float32) - 128) * scales.reshape(5, 3, 1)).reshape(5, 96)[:, :70].T
    assert np.abs(restored - weight)[:32].max() < 0.02
    assert np.abs(restored - weight).max() < 2


def test_sensitivity_finds_the_outlier(tiny_bert: Path, tmp_path: Path) -> None:
    folder, _ = exported(with_outlier(tiny_bert, 30.0), tmp_path / "model")
    encoder, ids = folder / "encoder.onnx", np.arange(5, 45).reshape(2, 20)
    errors = product_errors(encoder, {"ids": ids, "seen": ids > 0})
    assert max(errors, key=lambda name: errors[name]) == "/model/encoder/layer.0/output/dense/MatMul"
    assert list(errors) == product_names(encoder)
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".onnx") == ["encoder.onnx", "head.onnx"]
    quantize(encoder, tmp_path / "floats.onnx", floats=product_names(encoder), rounds_embeddings=False)
    assert session(tmp_path / "floats.onnx").run(None, {"ids": ids, "seen": ids > 0})[0] == pytest.approx(
        session(encoder).run(None, {"ids": ids, "seen": ids > 0})[0], abs=1e-6
    )


def test_dev_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spanwise.formats import write as write_sentences

    for split in ("train", "dev", "test"):
        write_sentences(sentences(9, seed=len(split)), tmp_path / f"{split}.jsonl")
    assert find_dev_data(None, None) is None
    assert find_dev_data(None, tmp_path / "test.jsonl") is None  # test sentences are not used
    monkeypatch.setattr(choice, "MAX_SENTENCES", 4)
    dev = find_dev_data(None, tmp_path)
    assert dev is not None
    assert (len(dev.sentences), dev.total, len(dev.context)) == (4, 9, 27)
    assert [s.words for s in dev.sentences] == [s.words for s in (find_dev_data(tmp_path / "dev.jsonl", None) or dev).sentences]
    with pytest.raises(SpanwiseError, match="no entities"):
        DevData.of(Corpus({"dev": (Sentence("s", ("a",)),)}), "dev", "bare")
