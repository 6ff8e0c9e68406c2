"""The probabilities of candidate spans, of every kind of model."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny

from spanwise.active_learning.candidate_spans import predict_candidate_spans
from spanwise.active_learning.choosing import Criteria, choose
from spanwise.core.types import Sentence
from spanwise.prediction.load import load
from spanwise.prediction.predictor import Predictor


@pytest.mark.parametrize("recipe", ["global-pointer", "grid", "spanner", "biaffine", "seqner-crf", "bl-seqner"])
def test_models_give_more_spans_than_they_predict(recipe: str, tmp_path: Path) -> None:
    sentences = [*tiny.sentences(20, seed=4), tiny.LONG]
    predictor = Predictor(tiny.fit(tmp_path / "run", recipe=recipe, epochs=2).model, "cpu")
    candidates, predicted = list(predict_candidate_spans(predictor, sentences)), predictor.predict(sentences)
    assert [sentence.id for sentence in candidates] == [sentence.id for sentence in sentences]
    scores, predicted_scores = ([e.score or 0.0 for s in part for e in s.entities] for part in (candidates, predicted))
    assert len(scores) > len(predicted_scores)
    assert 0 < min(scores) < 0.2


def test_models_that_type_given_spans_give_their_types() -> None:
    sentences = tiny.sentences(5, seed=4)
    predictor = Predictor(tiny.model("static", "sng", ["head.task=typing", "encoder.glove=null"]), "cpu")
    candidates = list(predict_candidate_spans(predictor, sentences))
    assert [len(sentence.entities) for sentence in candidates] == [len(sentence.entities) for sentence in sentences]


def test_long_sentences_are_scored_in_windows() -> None:
    long = Sentence("long", ("the",) * 1500)
    predictor = Predictor(tiny.model("static", "spanner"), "cpu")
    (scored,) = predict_candidate_spans(predictor, [long])
    assert scored.words == long.words
    assert max(entity.range.end for entity in scored.entities) > 1000


def test_onnx_and_torch_choose_the_same(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from spanwise.export.onnx import export_onnx

    run, folder = tmp_path / "run", tmp_path / "onnx"
    tiny.model("static", "global-pointer").save(run)
    export_onnx(run, folder)
    pool = tiny.sentences(60, seed=8)
    chosen = [[c.number for c in choose(load(path, "cpu"), pool, Criteria(10))] for path in (run, folder)]
    assert chosen[0] == chosen[1]
