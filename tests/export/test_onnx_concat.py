"""ONNX graphs of concatenated encoders, compared with torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import discontinuous_corpus as reports
import pytest
import torch
from tiny import corpus, mixed_sentences, sentences

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.integrations.hub import HubModel
from spanwise.models.model import Model
from spanwise.prediction.predictor import Predictor
from spanwise.recipes.catalog import configure
from spanwise.runs.folder import RunFolder

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; run pip install 'spanwise[onnx]'")
pytest.importorskip("onnx", reason="onnx is not installed; run pip install 'spanwise[onnx]'")

from spanwise.export.choice import quantize_safely
from spanwise.export.onnx import write
from spanwise.export.record import check_quantizable
from spanwise.prediction.onnx import encoders
from spanwise.prediction.onnx.predictor import OnnxPredictor

CHARACTERS = {"kind": "static", "word_size": 0, "char_reader": "cnn", "char_hidden": 5, "layers": 0, "dropout": 0.0}
WORDS = {"kind": "static", "word_size": 6, "char_size": 4, "char_hidden": 3, "hidden": 7}
TAGS = {"kind": "static", "word_size": 0, "char_hidden": 0, "pos_size": 4, "layers": 0}
UNKNOWN = [Sentence("unknown", ("Ωmega", "acid", "🙂", "\u4e2d\u6587")), Sentence("single", ("Ω",))]


def concat(parts: Sequence[dict[str, Any]], data: Corpus | None = None, recipe: str = "spanwise", **settings: Any) -> Model:
    """A model with random weights that predicts entities in most sentences."""
    torch.manual_seed(0)
    config = configure(recipe, encoder="static")
    encoder = {"kind": "concat", "parts": list(parts), **settings}
    head = {**config.head, "kind": "grid", "channels": 12, "rank": 8, "max_width": 5}
    built = Model.build(config.model_copy(update={"encoder": encoder, "head": head}), data or corpus())
    with torch.no_grad():
        for name, parameter in built.head.named_parameters():
            if name.endswith("classifier.weight"):
                parameter.mul_(8)
            elif name.endswith("classifier.bias"):
                parameter.fill_(0.0)[-1] = -3.0  # of NONE
    return built.eval()


def check(built: Model, folder: Path, given: Sequence[Sentence]) -> OnnxPredictor:
    """Compare entities and scores for several batch sizes."""
    folder.mkdir(exist_ok=True)
    write(built, folder)
    expected, exported = Predictor(built, "cpu").predict(given), OnnxPredictor(folder, "cpu")
    for size in (64, 3, 1):
        actual = exported.predict(given, batch_size=size)
        assert actual == expected
        scores = [[entity.score for sentence in output for entity in sentence.entities] for output in (actual, expected)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)
        assert len(scores[0]) > 20
    return exported


@pytest.fixture
def given() -> list[Sentence]:
    """Empty and long sentences, sentences of one word, words of many subwords and unknown characters."""
    return [*mixed_sentences(), *UNKNOWN, *sentences(8, seed=4)]


@pytest.mark.parametrize("hidden", [0, 6])
def test_transformer_and_characters(tiny_bert: Path, tmp_path: Path, given: list[Sentence], hidden: int) -> None:
    built = concat([{"kind": "transformer", "name": str(tiny_bert)}, CHARACTERS], hidden=hidden, layers=2)
    exported = check(built, tmp_path, given)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == [
        "config.yaml", "head.onnx", "labels.json", "onnx.json", "part-0/encoder.onnx", "part-0/tokenizer.json",
        "part-1/encoder.onnx", "part-1/static_encoder.json",
    ]  # fmt: skip
    assert all(map(RunFolder(tmp_path).owns, (path for path in tmp_path.rglob("*") if path.is_file())))
    words = tuple(word for sentence in sentences(110, seed=2) for word in sentence.words)
    assert len(words) > 600  # more than a window of words
    assert exported.predict(Sentence("long", words)) == Predictor(built, "cpu").predict(Sentence("long", words))


def test_document_context_and_parts_of_parts(
    tiny_bert: Path, tiny_roberta: Path, tmp_path: Path, given: list[Sentence], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoders, "MAX_ROWS", 3)  # rows of subwords are encoded in several calls
    inner = {"kind": "concat", "hidden": 5, "parts": [WORDS, {"kind": "transformer", "name": str(tiny_roberta)}]}
    parts = [{"kind": "transformer", "name": str(tiny_bert), "context": "document"}, inner]
    documents = [replace(sentence, document=f"d{number // 5}") for number, sentence in enumerate(given)]
    built = concat(parts)
    exported = check(built, tmp_path, documents)
    assert exported.predict(documents) != exported.predict(given)  # the context is read
    assert (tmp_path / "part-1" / "part-1" / "tokenizer.json").is_file()


def test_static_parts_with_tags(tmp_path: Path, given: list[Sentence]) -> None:
    def tagged(items: Sequence[Sentence]) -> list[Sentence]:
        return [replace(item, pos=tuple("NV"[len(word) % 2] for word in item.words)) for item in items]

    data = Corpus({split: tuple(tagged(items)) for split, items in corpus().splits.items()})
    check(concat([WORDS, TAGS], data), tmp_path, tagged(given))


def test_discontinuous_entities(tiny_bert: Path, tmp_path: Path) -> None:
    data = reports.corpus(60, 5, 20)
    built = concat([{"kind": "transformer", "name": str(tiny_bert)}, CHARACTERS], data)
    with torch.no_grad():  # many fragments and links
        built.head.get_parameter("links.grid.classifier.bias").fill_(3.0)
    exported = check(built, tmp_path, data["test"])
    assert any(entity.is_discontinuous for sentence in exported.predict(data["test"]) for entity in sentence.entities)


def test_int8_quantizes_transformers_only(tiny_bert: Path, tmp_path: Path) -> None:
    built = concat([{"kind": "transformer", "name": str(tiny_bert)}, CHARACTERS, WORDS])
    write(built, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.onnx")}
    quantize_safely(tmp_path)
    changed = [path.relative_to(tmp_path) for path, content in before.items() if path.read_bytes() != content]
    assert changed == [Path("part-0/encoder.onnx")]
    assert before.keys() == set(tmp_path.rglob("*.onnx"))
    assert OnnxPredictor(tmp_path, "cpu").predict(sentences(3))
    with pytest.raises(SpanwiseError, match="int8 is for transformer encoders"):
        check_quantizable(concat([CHARACTERS, WORDS]).encoder)


def test_files_of_a_part(tiny_bert: Path, tmp_path: Path) -> None:
    folder, pushed = tmp_path / "model", tmp_path / "pushed"
    folder.mkdir()
    write(concat([{"kind": "transformer", "name": str(tiny_bert)}, CHARACTERS]), folder)
    HubModel(folder).save_pretrained(pushed)
    OnnxPredictor(pushed, "cpu")  # has the files of all parts
    (pushed / "part-1" / "encoder.onnx").unlink()
    with pytest.raises(SpanwiseError, match=r"incomplete; missing part-1/encoder\.onnx"):
        OnnxPredictor(pushed, "cpu")
