"""8-bit graphs of transformers, and the choice among them on dev."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import WINDOW, bert, model, sentences

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.encoders.transformer import TransformerEncoder
from spanwise.models.model import Model
from spanwise.prediction.predictor import Predictor

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; run pip install 'spanwise[onnx]'")
onnx = pytest.importorskip("onnx", reason="onnx is not installed; run pip install 'spanwise[onnx]'")

from spanwise.export import choice, rounding  # noqa: E402
from spanwise.export.choice import DevData, choose_quantization, find_dev_data, quantize_safely  # noqa: E402
from spanwise.export.onnx import write  # noqa: E402
from spanwise.export.quantization import load_graph, product_names, quantize, round_products, weight_products  # noqa: E402
from spanwise.export.rounding import channel_divisors, relative_error, round_blocks, round_columns  # noqa: E402
from spanwise.prediction.onnx.encoders import transformers  # noqa: E402
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


def use_one_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Round all channels of an input with one scale, without divisors and outliers in float32."""
    monkeypatch.setattr(rounding, "LIMITS", (1.0,))
    monkeypatch.setattr(rounding, "MAX_OUTLIERS", 0)


def test_the_first_candidate_that_is_close_enough_is_chosen(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One scale for all inputs of a product is too coarse for an outlier; a scale for each block is enough."""
    use_one_scale(monkeypatch)
    folder, dev = exported(with_outlier(tiny_bert, 30.0), tmp_path / "model")
    lines: list[str] = []
    record = choose_quantization(folder, dev, 4.0, lines.append)
    assert [tried.name for tried in record.tried] == ["float32", *NAMES[:2]]
    assert record.chosen == NAMES[1]
    assert record.tried[0].f1 == 100.0
    assert record.tried[1].loss > 4.0 > 3.0 > record.tried[2].loss
    assert len(lines) == 2 + len(record.tried)
    operators = {node.op_type for node in onnx.load(folder / "encoder.onnx").graph.node}
    assert operators >= {"MatMulInteger", "MatMulNBits", "LayerNormalization"}
    blocks = [node.name for node in onnx.load(folder / "encoder.onnx").graph.node if node.op_type == "MatMulNBits"]
    assert "/model/encoder/layer.0/output/dense/MatMul" in blocks


@pytest.mark.parametrize(("factor", "max_outliers"), [(30.0, 0), (30.0, 8), (1000.0, 8)])
def test_an_outlier_is_divided_or_stays_in_float32(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float, max_outliers: int
) -> None:
    monkeypatch.setattr(rounding, "MAX_OUTLIERS", max_outliers)
    folder, dev = exported(with_outlier(tiny_bert, factor), tmp_path / "model")
    record = choose_quantization(folder, dev, 4.0, lambda line: None)
    assert record.chosen == NAMES[0]
    assert record.tried[1].loss < 2


def test_sensitive_products_stay_in_float32(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger outlier also spoils its block, so that only the last candidate is close enough."""
    use_one_scale(monkeypatch)
    folder, dev = exported(with_outlier(tiny_bert, 1000.0), tmp_path / "model")
    record = choose_quantization(folder, dev, 4.0, lambda line: None)
    assert record.chosen == "blocks, a quarter in float32"
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
    assert (record.chosen, record.tried, record.precision) == ("all in blocks", (), "int8")
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
    values, scales = round_blocks(weight)
    assert (values.shape, scales.shape) == ((5, 3, 32), (15,))
    restored = ((values.astype(np.float32) - 128) * scales.reshape(5, 3, 1)).reshape(5, 96)[:, :70].T
    assert np.abs(restored - weight)[:32].max() < 0.02
    assert np.abs(restored - weight).max() < 2


def test_only_the_chosen_products_change(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of rounding is highest for the product with the outlier; a graph without rounded products is the same."""
    folder, _ = exported(with_outlier(tiny_bert, 30.0), tmp_path / "model")
    encoder, ids = folder / "encoder.onnx", np.arange(5, 45).reshape(2, 20)
    inputs = {"ids": ids, "seen": ids < 40}
    use_one_scale(monkeypatch)
    rounded = round_products(encoder, inputs)
    assert max(rounded, key=lambda name: rounded[name].error) == "/model/encoder/layer.0/output/dense/MatMul"
    assert set(rounded) == set(product_names(encoder))
    assert sorted(path.name for path in folder.iterdir() if path.suffix == ".onnx") == ["encoder.onnx", "head.onnx"]
    quantize(encoder, tmp_path / "floats.onnx", {})
    exact = session(encoder).run(None, inputs)[0]
    assert session(tmp_path / "floats.onnx").run(None, inputs)[0] == pytest.approx(exact, abs=1e-6)
    (sensitive, *others) = sorted(rounded, key=lambda name: -rounded[name].error)

    def error(names: list[str]) -> float:
        quantize(encoder, tmp_path / "some.onnx", {name: rounded[name] for name in names})
        return float(np.square(session(tmp_path / "some.onnx").run(None, inputs)[0] - exact)[inputs["seen"]].mean())

    assert 0 < 4 * error(others) < error([sensitive])


def test_products_with_the_same_input_round_it_once(tiny_bert: Path, tmp_path: Path) -> None:
    folder, _ = exported(model(tiny_bert, "spanner"), tmp_path / "model")
    encoder, ids = folder / "encoder.onnx", np.arange(5, 45).reshape(2, 20)
    rounded = round_products(encoder, {"ids": ids, "seen": ids < 40})
    quantize(encoder, tmp_path / "int8.onnx", rounded)
    operators = [node.op_type for node in onnx.load(tmp_path / "int8.onnx").graph.node]
    assert (operators.count("MatMulInteger"), operators.count("DynamicQuantizeLinear")) == (18, 12)
    assert "MatMulNBits" not in operators


def test_a_shared_weight_is_rounded_once(tmp_path: Path) -> None:
    """Products that share a weight have different inputs, so these are rounded as they are."""
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    weight = random.normal(size=(4, 4)).astype(np.float32)
    nodes = [helper.make_node("MatMul", [given, "w"], [to], to) for given, to in (("x", "y"), ("y", "z"))]
    x, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "words", 4]) for name in "xz")
    seen = helper.make_tensor_value_info("seen", TensorProto.BOOL, ["batch", "words"])
    graph = helper.make_graph(nodes, "twice", [x, seen], [z], [numpy_helper.from_array(weight, "w")])
    source, target = tmp_path / "twice.onnx", tmp_path / "int8.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), source)
    rows = random.normal(size=(5, 10, 4)).astype(np.float32) * np.array([1, 1, 1, 100], np.float32)
    batch = {"x": rows, "seen": np.ones((5, 10), bool)}
    rounded = round_products(source, batch)
    assert [(product.input, product.values is rounded["y"].values) for product in rounded.values()] == [(None, True)] * 2
    quantize(source, target, rounded)
    tensors = {tensor.name: tensor.data_type for tensor in onnx.load(target).graph.initializer}
    assert tensors == {"w_integers": TensorProto.INT8, "w_scales": TensorProto.FLOAT}
    expected, result = rows @ weight @ weight, session(target).run(None, batch)[0]
    assert np.abs(result - expected).max() < 0.03 * np.abs(expected).max()


def test_layers_that_share_weights_are_all_rounded(tiny_bert: Path, tmp_path: Path) -> None:
    from transformers import AlbertConfig, AutoModel

    built = model(tiny_bert, "spanner")
    assert isinstance(built.encoder, TransformerEncoder)
    tokenizer, folder = built.encoder.tokenizer, tmp_path / "model"
    config = AlbertConfig(
        vocab_size=len(tokenizer), embedding_size=16, hidden_size=32, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=WINDOW,
    )  # fmt: skip
    built.encoder = TransformerEncoder(built.encoder.settings, AutoModel.from_config(config), tokenizer).eval()
    folder, dev = exported(built, folder)
    weights = {product.weight for product in weight_products(load_graph(folder / "encoder.onnx"))}
    choose_quantization(folder, dev, 100.0, lambda line: None)
    graph = onnx.load(folder / "encoder.onnx").graph
    assert len(weights) == 1 + 6  # of embeddings and the layer
    assert [node.op_type for node in graph.node].count("MatMulInteger") == 1 + 3 * 6
    assert weights.isdisjoint(tensor.name for tensor in graph.initializer)  # in float32


def test_compensated_rounding_keeps_results_on_similar_inputs() -> None:
    random = np.random.default_rng(0)
    mixing = random.normal(size=(8, 300)).astype(np.float32)  # inputs are correlated, as those of a transformer
    rows, others = (random.normal(size=(2000, 8)).astype(np.float32) @ mixing for _ in range(2))
    weight = random.normal(size=(300, 20)).astype(np.float32)
    plain, compensated = (np.square(others @ (weight - values * scales)).mean() for values, scales in
                          (round_columns(weight), round_columns(weight, rows)))  # fmt: skip
    assert compensated < 0.1 * plain
    values, _ = round_columns(weight * 1e-30, rows * 0)
    assert np.abs(values).max() <= 64


def test_outliers_are_exact(tmp_path: Path) -> None:
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    rows, weight = (random.normal(size=size).astype(np.float32) for size in ((2, 30, 20), (20, 6)))
    rows[0, 0, 3], rows[1, 2, 17] = 1e4, -1e3
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "words", size]) for name, size in (("x", 20), ("y", 6))
    )
    seen = helper.make_tensor_value_info("seen", TensorProto.BOOL, ["batch", "words"])
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "y")
    graph = helper.make_graph([node], "product", [x, seen], [y], [numpy_helper.from_array(weight, "w")])
    source, target = tmp_path / "product.onnx", tmp_path / "int8.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), source)
    batch = {"x": rows, "seen": np.ones((2, 30), bool)}
    (rounded,) = round_products(source, batch).values()
    assert rounded.input is not None
    assert rounded.input.outliers.tolist() == [3, 17]
    quantize(source, target, {"y": rounded})
    assert np.abs(session(target).run(None, batch)[0] - rows @ weight).max() < 0.2


def test_divisors_reduce_the_error_of_large_channels() -> None:
    random = np.random.default_rng(0)
    rows, weight = (random.normal(size=size).astype(np.float32) for size in ((500, 64), (64, 16)))
    assert channel_divisors(np.zeros((3, 64), np.float32), [weight]).tolist() == [1.0] * 64
    rows[:, 7] *= 50
    divisors = channel_divisors(rows, [weight])
    scaled = weight * divisors[:, None]
    error = relative_error(rows / divisors, scaled, *round_columns(scaled))
    assert error < 0.3 * relative_error(rows, weight, *round_columns(weight))


def test_padding_repeats_the_last_subword(tiny_bert: Path, tmp_path: Path) -> None:
    """So the scale of a product's input is that of real subwords. The states of real subwords do not change."""
    folder, dev = exported(model(tiny_bert, "spanner"), tmp_path / "model")
    (encoder,) = transformers(OnnxPredictor(folder, "cpu").encoder)
    short, long = sorted(encoder.prepare(dev.sentences), key=encoder.cost)[:: len(dev.sentences) - 1]
    alone, padded = (encoder.graph.select(encoder.collate(batch)) for batch in ([short], [short, long]))
    real = alone["ids"].shape[1]
    assert padded["seen"][0].tolist() == [column < real for column in range(padded["ids"].shape[1])]
    assert set(padded["ids"][0, real:].tolist()) == {int(alone["ids"][0, -1])}
    states, expected = (encoder.graph.run(dict(batch))[0][0, :real] for batch in (padded, alone))
    assert states == pytest.approx(expected, abs=1e-5)


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
