"""Thresholds of models whose entities and relations have types of the same name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import torch

import spanwise
from spanwise import Sentence, SpanwiseError
from spanwise.config.settings import CalibrationSettings
from spanwise.core.types import Corpus
from spanwise.decoding.thresholds import Thresholds, apply_threshold
from spanwise.formats import Ledger
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.systems import System, system_predictions
from spanwise.serve.batching import Query

GIVEN = tiny.sentences(30, seed=4)


def rename(sentence: Sentence) -> Sentence:
    """Name one type of relations like a type of entities."""
    relations = (replace(relation, type="Drug") if relation.type == "sold" else relation for relation in sentence.relations)
    return replace(sentence, relations=tuple(relations))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An untrained model with scores of all sizes: as it is, calibrated, and both in ONNX."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed; run pip install 'spanwise[onnx]'")
    from spanwise.export.onnx import write

    data = tiny.with_relations(tiny.corpus())
    data = Corpus({split: tuple(map(rename, members)) for split, members in data.splits.items()}, data.name)
    built = tiny.model("static", "span-relations", ["head.threshold=0.2", "head.entities.kind=global-pointer"], data=data)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in built.head.parameters():
            parameter.copy_(0.5 * torch.randn_like(parameter))
    folder = tmp_path_factory.mktemp("models")
    for name, calibration in (("torch", None), ("calibrated", CalibrationSettings(temperature=2.5, bias=0.3))):
        built.config = built.config.model_copy(update={"calibration": calibration})
        built.save(folder / name)
        (folder / f"{name}-onnx").mkdir()
        write(built, folder / f"{name}-onnx")
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture(params=["torch", "calibrated", "torch-onnx", "calibrated-onnx"])
def predictor(request: pytest.FixtureRequest, folders: dict[str, Path]) -> BasePredictor:
    return spanwise.load(folders[request.param], "cpu")


def relations(sentences: Iterable[Sentence], *types: str) -> list[tuple[str, str, int, int, float]]:
    return [(s.id, r.type, r.head, r.tail, r.score or 0) for s in sentences for r in s.relations if r.type in types]


def middle(values: Iterable[float | None]) -> float:
    scores = sorted(value or 0 for value in values)
    assert len(scores) > 5
    return scores[len(scores) // 2]


def test_relations_have_their_own_threshold(predictor: BasePredictor) -> None:
    default = predictor.predict(GIVEN)
    more = predictor.predict(GIVEN, threshold=Thresholds(0.0, 0.05))
    for limit in (0.05, 0.1, middle(r.score for s in default for r in s.relations)):
        predicted = predictor.predict(GIVEN, threshold={"relation:Drug": limit})
        assert [s.entities for s in predicted] == [s.entities for s in default]
        assert relations(predicted, "Drug") == [row for row in relations(more, "Drug") if row[-1] >= limit]
        assert relations(predicted, "has", "known") == relations(default, "has", "known")
    assert len(relations(more, "Drug")) > len(relations(default, "Drug")) > len(relations(predicted, "Drug"))


def test_entities_have_their_own_threshold(predictor: BasePredictor) -> None:
    default = predictor.predict(GIVEN)
    limit = middle(e.score for s in default for e in s.entities if e.type == "Drug")
    predicted = predictor.predict(GIVEN, threshold={"entity:Drug": limit})
    assert predicted == list(apply_threshold(default, Thresholds({"Drug": limit})))
    assert any(score < limit for *_, score in relations(predicted, "Drug"))
    both = predictor.predict(GIVEN, threshold={"Drug": limit})
    assert both == predictor.predict(GIVEN, threshold={"entity:Drug": limit, "relation:Drug": limit}) != predicted
    assert both == predictor.predict(GIVEN, threshold={"Drug": 0.1, "entity:Drug": limit, "relation:Drug": limit})


def test_a_saved_threshold_is_for_entities(predictor: BasePredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = middle(e.score for s in predictor.predict(GIVEN) for e in s.entities if e.type == "Drug")
    expected = predictor.predict(GIVEN, threshold={"entity:Drug": limit})
    monkeypatch.setattr(predictor, "thresholds", {"Drug": limit})
    assert predictor.predict(GIVEN) == expected


def test_one_threshold_for_all_types_is_that_of_each(predictor: BasePredictor) -> None:
    for limit in (0.1, 0.3, 0.58):
        predicted = predictor.predict(GIVEN, threshold=limit)
        scores = [item.score or 0 for s in predicted for item in (*s.entities, *s.relations)]
        assert min(scores) >= limit
        each = dict.fromkeys((*predictor.types, *predictor.relation_types), limit)
        assert predicted == predictor.predict(GIVEN, threshold=each)
        expected = apply_threshold(predictor.predict(GIVEN, threshold=Thresholds(limit, 0.05)), limit)
        assert relations(predicted, "Drug") == relations(expected, "Drug")


def test_zero_is_the_default_of_a_type_of_relations(predictor: BasePredictor) -> None:
    predicted = predictor.predict(GIVEN, threshold={"relation:Drug": 0.0, "known": 0.05})
    assert relations(predicted, "Drug") == relations(predictor.predict(GIVEN), "Drug")


def test_the_service_limits_entities_by_calibrated_scores_and_relations_by_theirs(predictor: BasePredictor) -> None:
    thresholds = Query(("text",), {"Drug": 0.001, "known": 0.05, "has": 0.001}).bounded_threshold(predictor)
    assert thresholds == Thresholds({"Drug": predictor.min_threshold}, {"Drug": 0.02, "known": 0.05, "has": 0.02})
    thresholds = Query(("text",), 0.05).bounded_threshold(predictor)
    assert thresholds == Thresholds(max(0.05, predictor.min_threshold), 0.05)
    assert not Query(("text",)).bounded_threshold(predictor)


def test_files_and_models_of_a_comparison(folders: dict[str, Path], tmp_path: Path) -> None:
    predictor = spanwise.load(folders["torch"], "cpu")
    spanwise.write(GIVEN, tmp_path / "gold.jsonl")
    spanwise.write(predictor.predict(GIVEN), tmp_path / "file.jsonl")
    limit = middle(r.score for s in predictor.predict(GIVEN) for r in s.relations if r.type == "Drug")
    threshold = {"relation:Drug": limit, "entity:Food": 0.2}
    expected = predictor.predict(GIVEN, threshold={"relation:Drug": limit})
    for path in (folders["torch"], tmp_path / "file.jsonl"):
        (predicted,) = system_predictions(
            System("system", (path,)), GIVEN, tmp_path / "gold.jsonl", "test", format=None, data_format=None, ledger=Ledger(),
            device="cpu", threshold=threshold,
        )  # fmt: skip
        assert [s.entities for s in predicted] == [s.entities for s in expected]
        assert relations(predicted, "Drug", "has", "known") == relations(expected, "Drug", "has", "known")


def test_unknown_names_are_errors(folders: dict[str, Path]) -> None:
    predictor = spanwise.load(folders["torch"], "cpu")
    for name in ("entity:has", "relation:Place", "relation:", "entities:Drug"):
        with pytest.raises(SpanwiseError, match=rf"^unknown type with a threshold '{name}'.*; known: Drug, Place, has, known$"):
            predictor.predict(GIVEN, threshold={name: 0.5})
