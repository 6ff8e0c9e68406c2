"""Sections that need a model, for every recipe, and their figures."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import METHODS, corpus, fit, model, sentences, with_relations

from spanwise.analysis.analyze import AnalysisInput, build_sections
from spanwise.analysis.calibration_section import calibration_section, relations_section
from spanwise.analysis.figures.style import render
from spanwise.analysis.model_sections import model_sections
from spanwise.analysis.sample import correct_entities
from spanwise.analysis.section import Section
from spanwise.analysis.span_sample import span_sample
from spanwise.analysis.training_section import training_section
from spanwise.analysis.vector_section import vector_section
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.evaluation.tasks import EntityTask
from spanwise.models.model import Model
from spanwise.prediction.predictor import Predictor, predict
from spanwise.prediction.scoring import predict_split
from spanwise.prediction.span_vectors import span_vectors
from spanwise.recipes.catalog import configure

GOLD = sentences(20)
WITH_VECTORS = {
    "bl-spanner", "deep-span", "deep-span-pruned", "grid", "locate-label", "shallow-span", "sng", "spanner", "spanwise",
}  # fmt: skip
VECTOR_FIGURES = {"norms", "cosines", "weights", "overlaps", "pca", "pca_all"}


def sections_of(analysed: Model, gold: Iterable[Sentence] = GOLD, projection: str = "pca") -> dict[str, Section]:
    gold = list(gold)
    return {
        section.name: section
        for section in model_sections(analysed, gold, list(predict(analysed, gold)), projection=projection)
    }


def draw(sections: Iterable[Section]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for section in sections:
            for plot in section.figures.values():
                assert plot.caption
                assert render(plot.draw(), "png").startswith(b"\x89PNG")


@pytest.mark.parametrize("recipe", sorted(set(METHODS) - {"sng-paper", "locate-label-paper-genia", "gplinker"}))
def test_sections_of_every_recipe(tiny_bert: Path, recipe: str) -> None:
    if "relations" in recipe:
        torch.manual_seed(0)
        analysed = Model.build(configure(recipe, encoder=str(tiny_bert)), with_relations(corpus())).eval()
    else:
        analysed = model(tiny_bert, recipe)
    sections = sections_of(analysed)
    assert list(sections) == ["probabilities", "vectors"]
    assert set(sections["probabilities"].figures) == {"violin", "volcano", "pca"}
    entities = sum(len(sentence.entities) for sentence in GOLD)
    scored = len(sections["probabilities"].tables["entities"].rows)
    assert 0 < scored <= entities
    if recipe not in ("locate-label", "deep-span-pruned"):  # prune spans before scoring
        assert scored == entities
    vectors = sections["vectors"]
    if recipe in WITH_VECTORS:
        assert set(vectors.figures) == VECTOR_FIGURES
        measures = [row[:2] for row in vectors.tables["summary"].rows]
        assert ("weights", "absolute cosine between types and no entity") in measures
    else:
        assert not vectors.figures
        assert not vectors.tables
        assert "has no span vectors" in vectors.text


def test_a_typing_model_has_no_class_for_no_entity() -> None:
    sections = sections_of(model("static", "sng", ["head.task=typing"]))
    assert sections["probabilities"].tables["entities"].rows
    vectors = sections["vectors"]
    assert [row[0] for row in vectors.tables["weights"].rows] == ["Place", "Drug"]  # the most frequent first
    assert "pca_all" not in vectors.figures
    draw(sections.values())


def test_vector_section_by_hand() -> None:
    analysed = model("static")
    correct = correct_entities(GOLD, [replace(sentence, entities=sentence.entities[:1]) for sentence in GOLD])
    sample = span_sample(analysed, GOLD, correct)
    all_vectors = span_vectors(analysed, GOLD)
    rows, types, is_first, others = [], [], [], set()
    for sentence, (spans, vectors) in zip(GOLD, all_vectors, strict=True):
        known = {tuple(span): vector for span, vector in zip(spans.tolist(), vectors, strict=True)}
        for number, entity in enumerate(sentence.entities):
            rows.append(known.pop(entity.range))
            types.append(entity.type)
            is_first.append(number == 0)
        others |= {vector.tobytes() for vector in known.values()} if sentence.entities else set()
    np.testing.assert_allclose(sample.vectors, rows, atol=1e-5)
    assert list(sample.types) == types
    assert sample.is_correct.tolist() == is_first
    assert len(sample.other_vectors) <= len(rows)
    distances = np.abs(sample.other_vectors[:, None] - np.stack([np.frombuffer(vector, np.float32) for vector in others])).max(
        2
    )
    assert (distances.min(1) < 1e-5).all()  # each is a span that is not an entity

    section = vector_section(analysed, GOLD, correct)
    by_class = {row[0]: row for row in section.tables["classes"].rows}
    lengths = np.linalg.norm([row for row, type in zip(rows, types, strict=True) if type == "Drug"], axis=1)
    assert by_class["Drug"][1:4] == (len(lengths), pytest.approx(lengths.mean()), pytest.approx(lengths.std()))
    weights = analysed.head.class_weights
    assert weights is not None
    norms = dict(section.tables["weights"].rows)
    assert [norms[name] for name in ("Drug", "Place", "no entity")] == pytest.approx(weights.norm(dim=1).tolist())
    unit = (weights / weights.norm(dim=1, keepdim=True)).detach().numpy()
    expected = (abs(unit[0] @ unit[2]) + abs(unit[1] @ unit[2])) / 2
    summary = {row[:2]: row[2] for row in section.tables["summary"].rows}
    assert summary["weights", "absolute cosine between types and no entity"] == pytest.approx(expected)
    again = vector_section(analysed, GOLD, correct)
    assert again.tables == section.tables  # the sample is reproducible


def test_figures_of_a_trained_run_are_drawn_without_warnings(tmp_path: Path) -> None:
    run = fit(tmp_path / "run", recipe="spanner", epochs=6)
    analysed = Model.load(run.folder)
    predicted = list(predict(analysed, GOLD))
    sections = model_sections(analysed, GOLD, predicted, run=run.folder, projection="tsne")
    assert [section.name for section in sections] == ["training", "probabilities", "vectors"]
    assert set(sections[2].figures) == VECTOR_FIGURES | {"tsne"}
    assert [row[0] for row in sections[0].tables["epochs"].rows] == [1, 2, 3, 4, 5, 6]
    calibration = calibration_section(GOLD, predicted)
    assert set(calibration.figures) == {"reliability", "precision_recall"}
    draw([*sections, calibration])


def test_of_epochs_with_equal_scores_the_latest_is_the_best(tmp_path: Path) -> None:
    """Training keeps the latest of them."""
    rows = [{"epoch": epoch, "step": epoch, "loss": 1.0, "dev": {"f1": f1}} for epoch, f1 in enumerate((0.5, 0.8, 0.8, 0.7), 1)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    section = training_section(tmp_path, EntityTask())
    assert section is not None
    assert "The best dev F1 of 4 epochs is 80.00, in epoch 3." in section.text


def test_missing_and_broken_metrics(tmp_path: Path) -> None:
    analysed, predicted = model("static"), list(GOLD)
    assert [section.name for section in model_sections(analysed, GOLD, predicted, run=tmp_path)] == ["probabilities", "vectors"]
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1, "loss"', encoding="utf-8")
    with pytest.raises(SpanwiseError, match="cannot read the metrics"):
        model_sections(analysed, GOLD, predicted, run=tmp_path)


@pytest.mark.parametrize("recipe", ["seqner", "spanner"])  # without and with span vectors
def test_missing_projection_package_is_an_error_for_every_model(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    for gold in (GOLD, [Sentence("s", ("it", "rained"))]):
        with pytest.raises(SpanwiseError, match="pip install umap-learn"):
            model_sections(model("static", recipe), gold, gold, projection="umap")


def test_predictions_may_be_split_differently_from_gold() -> None:
    """Gold is split around its entities, the predictions at every full stop."""
    drug, place, around = Entity("Drug", ((0, 2),)), Entity("Place", ((6, 7),)), Entity("Place", ((3, 5),))
    words = ("aspirin", "acid", "came", ".", "then", "near", "oslo", ".")
    gold = [Sentence("d-1", words, (drug, place, around), document="d", position=0)]
    predicted = [
        Sentence("d-1", words[:4], (drug,), document="d", position=0),
        Sentence("d-2", words[4:], (Entity("Place", ((2, 3),)),), document="d", position=1),
    ]
    sections = model_sections(model("static"), gold, predicted)
    columns = sections[0].tables["entities"].columns
    rows = [dict(zip(columns, row, strict=True)) for row in sections[0].tables["entities"].rows]
    assert [(row["start"], row["end"], row["found"]) for row in rows] == [(0, 2, 1), (6, 7, 1), (3, 5, 0)]


def test_context_is_split_like_gold(tmp_path: Path) -> None:
    """Otherwise positions in the document would differ, and words could be read twice."""
    (tmp_path / "a.txt").write_text("It rained. Then many came. Aspirin acid was seen near oslo.")
    (tmp_path / "a.ann").write_text("T1\tPlace 9 15\t. Then\n")
    result = predict_split(Predictor(model("static"), "cpu"), tmp_path)
    assert len(result.predicted) == 3
    assert [sentence.text.strip() for sentence in result.context] == [
        "It rained. Then many came.",
        "Aspirin acid was seen near oslo.",
    ]


def test_predictions_must_match_the_sentences() -> None:
    with pytest.raises(SpanwiseError, match="gold has none of the predictions' ids"):
        model_sections(model("static"), GOLD, sentences(20, seed=1, first=100))


def test_sections_without_entities_have_text_only() -> None:
    sections = sections_of(model("static"), [Sentence("s", ("it", "rained"))])
    assert not any(section.figures for section in sections.values())
    assert "no probability for any" in sections["probabilities"].text
    assert "fewer than three gold entities" in sections["vectors"].text


def test_calibration_without_scores_is_not_available() -> None:
    section = calibration_section(GOLD, GOLD)
    assert not section.figures
    assert "no score" in section.text


def test_relations_have_a_curve_of_precision_and_recall() -> None:
    gold = with_relations(corpus(1, 1, 12))["test"]
    relations = [tuple(replace(one, score=(n + 1) / 100) for one in sentence.relations) for n, sentence in enumerate(gold)]
    predicted = [replace(sentence, relations=scored) for sentence, scored in zip(gold, relations, strict=True)]
    section = relations_section(gold, predicted)
    assert section is not None
    rows = section.tables["thresholds"].rows
    assert [row[1] for row in rows] == [1.0] * len(rows)  # precision
    assert rows[-1][2] == 1.0
    draw([section])
    sections = build_sections(AnalysisInput("system", "data", gold, predicted, finds_relations=True))
    assert [one.name for one in sections if one.name in ("calibration", "relations")] == ["calibration", "relations"]
    assert relations_section(gold, gold) is None  # without scores
    assert relations_section(GOLD, GOLD) is None


def test_calibration_text() -> None:
    words = ("a", "b", "c", "d")
    gold = [Sentence("s", words, (Entity("X", ((0, 1),)), Entity("X", ((1, 2),))))]
    predicted = [Sentence("s", words, (Entity("X", ((0, 1),), 0.9), Entity("X", ((2, 3),), 0.7)))]
    section = calibration_section(gold, predicted)
    assert (
        "The mean score of 2 predictions is 0.800, and the precision is 0.500: on average, scores are 0.300 too high."
        in section.text
    )
    assert "the threshold 0.800 gives the best F1: 66.67, compared with 50.00 of all predictions" in section.text
    assert "spanwise evaluate --find-threshold also tries lower ones" in section.text
    assert [row[0] for row in section.tables["thresholds"].rows] == [0.9, 0.7]
    draw([section])
