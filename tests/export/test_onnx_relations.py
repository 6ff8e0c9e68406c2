"""ONNX graphs of relation heads, compared with torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import corpus, mixed_sentences, sentences, with_relations

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.models.model import Model
from spanwise.prediction.predictor import Predictor
from spanwise.recipes.catalog import configure

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; run pip install 'spanwise[onnx]'")
pytest.importorskip("onnx", reason="onnx is not installed; run pip install 'spanwise[onnx]'")

from spanwise.export.onnx import write
from spanwise.prediction.onnx import relations as onnx_relations
from spanwise.prediction.onnx.predictor import OnnxPredictor

SETTINGS = {
    "plain": {"threshold": 0.5},
    "all": {"threshold": 0.45, "distances": True, "rank": 4, "hidden": 5, "joint_scores": True},
}


def build(tiny_bert: Path, relations: dict[str, Any], **entities: Any) -> Model:
    torch.manual_seed(0)
    config = configure("span-relations", encoder=str(tiny_bert))
    entities = {"kind": "grid", "channels": 12, "rank": 8, "max_width": 4, **entities}
    head = {"kind": "span-relations", **relations, "entities": entities}
    built = Model.build(config.model_copy(update={"head": head}), with_relations(corpus()))
    with torch.no_grad():
        for name, parameter in built.head.named_parameters():
            if name.endswith("classifier.weight"):
                parameter.mul_(8)
            elif name == "entities.classifier.bias":
                parameter.fill_(0.0)[-1] = -3.0  # of NONE
            elif name == "classifier.bias":
                parameter.fill_(1.0)
    return built.eval()


def same(actual: Sequence[Sentence], expected: Sequence[Sentence]) -> int:
    """Compare entities, relations and scores; return the number of relations."""
    assert actual == expected
    scores = [[relation.score for sentence in output for relation in sentence.relations] for output in (actual, expected)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    return len(scores[0])


@pytest.mark.parametrize("name", SETTINGS)
def test_same_relations(tiny_bert: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built = build(tiny_bert, SETTINGS[name])
    write(built, tmp_path)
    torch_model, onnx_model = Predictor(built, "cpu"), OnnxPredictor(tmp_path, "cpu")
    assert (onnx_model.finds_relations, onnx_model.relation_types) == (True, torch_model.relation_types)
    given = [*mixed_sentences(), *sentences(12, seed=4)]
    expected = torch_model.predict(given)
    assert same(onnx_model.predict(given), expected) > 20
    monkeypatch.setattr(onnx_relations, "MAX_PAIRS", 5)
    for size in (3, 1):
        same(onnx_model.predict(given, batch_size=size), expected)


def test_thresholds_of_relations(tiny_bert: Path, tmp_path: Path) -> None:
    built = build(tiny_bert, {"threshold": 0.8})
    write(built, tmp_path)
    torch_model, onnx_model = Predictor(built, "cpu"), OnnxPredictor(tmp_path, "cpu")
    given = sentences(20, seed=4)
    relation = torch_model.relation_types[0]
    counts = [
        same(onnx_model.predict(given, threshold=threshold), torch_model.predict(given, threshold=threshold))
        for threshold in (0.0, 0.1, 0.9, {relation: 0.3}, {relation: 0.95, "Drug": 0.2})
    ]
    assert counts[1] > counts[0] > counts[2]
    assert counts[3] > counts[0]


def test_long_sentences_and_no_entities(tiny_bert: Path, tmp_path: Path) -> None:
    built = build(tiny_bert, SETTINGS["all"])
    write(built, tmp_path)
    words = tuple(word for sentence in sentences(100, seed=2) for word in sentence.words)
    assert len(words) > 520
    given = [Sentence("long", words), Sentence("window", words[:512]), Sentence("empty", ())]
    assert same(OnnxPredictor(tmp_path, "cpu").predict(given), Predictor(built, "cpu").predict(given)) > 20
    with torch.no_grad():
        built.head.get_parameter("entities.classifier.bias")[-1] = 99.0  # of NONE
    (tmp_path / "none").mkdir()
    write(built, tmp_path / "none")
    assert not any(sentence.entities for sentence in OnnxPredictor(tmp_path / "none", "cpu").predict(given[1:]))
    (tmp_path / "relations.onnx").unlink()
    with pytest.raises(SpanwiseError, match=r"missing relations\.onnx"):
        OnnxPredictor(tmp_path, "cpu")
