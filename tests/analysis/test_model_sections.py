"""The parts of an analysis that a model gives: each kind of head has what it promises, and every figure can be drawn."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from spanwise.analysis.calibration import calibration_section
from spanwise.analysis.model_sections import model_sections
from spanwise.analysis.section import Section
from spanwise.analysis.representations import vector_section
from tiny import corpus, fit, model, sentences, with_relations

from spanwise.analysis.figures.style import render
from spanwise.analysis.sample import correct_entities
from spanwise.analysis.span_sample import span_sample
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Entity, Sentence
from spanwise.models.model import Model
from spanwise.prediction.predictor import Predictor, predict
from spanwise.prediction.scoring import predict_split
from spanwise.prediction.span_vectors import span_vectors
from spanwise.recipes.catalog import configure, recipes

GOLD = sentences(20)
VECTORS = {
    "bl-spanner", "deep-span", "deep-span-pruned", "locate-label", "shallow-span", "sng", "spanner",
}  # fmt: skip
OF_VECTORS = {"norms", "cosines", "templates", "overlaps", "pca", "pca_all"}


def parts_of(made: Model, gold: Iterable[Sentence] = GOLD, projection: str = "pca") -> dict[str, Section]:
    gold = list(gold)
    return {section.name: section for section in model_sections(made, gold, list(predict(made, gold)), projection=projection)}


def draw(sections: Iterable[Section]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for section in sections:
            for make in section.figures.values():
                assert render(make(), "png").startswith(b"\x89PNG")


@pytest.mark.parametrize("recipe", sorted(set(recipes()) - {"sng-paper", "locate-label-paper"}))
def test_every_head_gives_what_it_promises(tiny_bert: Path, recipe: str) -> None:
    if "relations" in recipe:
        torch.manual_seed(0)
        made = Model.build(configure(recipe, encoder=str(tiny_bert)), with_relations(corpus())).eval()
    else:
        made = model(tiny_bert, recipe)
    sections = parts_of(made)
    assert list(sections) == ["probabilities", "vectors"]
    assert set(sections["probabilities"].figures) == {"violin", "volcano", "pca"}
    entities = sum(len(sentence.entities) for sentence in GOLD)
    judged = len(sections["probabilities"].tables["entities"].rows)
    assert 0 < judged <= entities
    if recipe not in ("locate-label", "deep-span-pruned"):  # which drop spans before they are judged
        assert judged == entities
    vectors = sections["vectors"]
    if recipe in VECTORS:
        assert set(vectors.figures) == OF_VECTORS
        measures = [row[:2] for row in vectors.tables["summary"].rows]
        assert ("templates", "absolute cosine between types and no entity") in measures
    else:
        assert not vectors.figures
        assert not vectors.tables
        assert "has no vector for each span" in vectors.text


def test_a_model_of_given_spans_has_no_class_for_nothing() -> None:
    sections = parts_of(model("static", "sng", ["head.task=typing"]))
    assert sections["probabilities"].tables["entities"].rows
    vectors = sections["vectors"]
    assert [row[0] for row in vectors.tables["templates"].rows] == ["Place", "Drug"]  # the commonest first
    assert "pca_all" not in vectors.figures
    draw(sections.values())


def test_the_sample_of_vectors() -> None:
    made = model("static")
    found = correct_entities(GOLD, [replace(sentence, entities=sentence.entities[:1]) for sentence in GOLD])
    sample = span_sample(made, GOLD, found)
    every = span_vectors(made, GOLD)
    rows, types, is_first, others = [], [], [], set()
    for sentence, (spans, vectors) in zip(GOLD, every, strict=True):
        known = {tuple(span): vector for span, vector in zip(spans.tolist(), vectors, strict=True)}
        for number, entity in enumerate(sentence.entities):
            rows.append(known.pop(entity.range))
            types.append(entity.type)
            is_first.append(number == 0)
        others |= {vector.tobytes() for vector in known.values()} if sentence.entities else set()
    np.testing.assert_allclose(sample.vectors, rows, atol=1e-5)
    assert list(sample.types) == types
    assert sample.found.tolist() == is_first
    assert len(sample.others) <= len(rows)
    distances = np.abs(sample.others[:, None] - np.stack([np.frombuffer(one, np.float32) for one in others])).max(2)
    assert (distances.min(1) < 1e-5).all()  # each is a span that is no entity

    section = vector_section(made, GOLD, found)
    by_class = {row[0]: row for row in section.tables["classes"].rows}
    lengths = np.linalg.norm([row for row, kind in zip(rows, types, strict=True) if kind == "Drug"], axis=1)
    assert by_class["Drug"][1:4] == (len(lengths), pytest.approx(lengths.mean()), pytest.approx(lengths.std()))
    templates = made.head.class_weights
    assert templates is not None
    norms = dict(section.tables["templates"].rows)
    assert [norms[name] for name in ("Drug", "Place", "no entity")] == pytest.approx(templates.norm(dim=1).tolist())
    unit = (templates / templates.norm(dim=1, keepdim=True)).detach().numpy()
    expected = (abs(unit[0] @ unit[2]) + abs(unit[1] @ unit[2])) / 2
    summary = {row[:2]: row[2] for row in section.tables["summary"].rows}
    assert summary["templates", "absolute cosine between types and no entity"] == pytest.approx(expected)
    again = vector_section(made, GOLD, found)
    assert again.tables == section.tables  # the sample is the same every time


def test_all_figures_of_a_trained_run_are_drawn_without_a_warning(tmp_path: Path) -> None:
    run = fit(tmp_path / "run", recipe="spanner", epochs=6)
    made = Model.load(run.folder)
    found = list(predict(made, GOLD))
    sections = model_sections(made, GOLD, found, run=run.folder, projection="tsne")
    assert [section.name for section in sections] == ["losses", "probabilities", "vectors"]
    assert set(sections[2].figures) == OF_VECTORS | {"tsne"}
    assert [row[0] for row in sections[0].tables["epochs"].rows] == [1, 2, 3, 4, 5, 6]
    calibration = calibration_section(GOLD, found)
    assert set(calibration.figures) == {"reliability", "precision_recall"}
    draw([*sections, calibration])


def test_a_run_without_metrics_has_no_losses_and_broken_ones_are_told(tmp_path: Path) -> None:
    made, found = model("static"), list(GOLD)
    assert [section.name for section in model_sections(made, GOLD, found, run=tmp_path)] == ["probabilities", "vectors"]
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1, "loss"', encoding="utf-8")
    with pytest.raises(SpanwiseError, match="these metrics cannot be read"):
        model_sections(made, GOLD, found, run=tmp_path)


@pytest.mark.parametrize("recipe", ["seqner", "spanner"])  # without span vectors, and with
def test_a_projection_that_is_not_installed_is_told_whatever_the_model_has(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    for gold in (GOLD, [Sentence("s", ("it", "rained"))]):
        with pytest.raises(SpanwiseError, match="pip install umap-learn"):
            model_sections(model("static", recipe), gold, gold, projection="umap")


def test_predictions_may_be_cut_elsewhere_than_gold() -> None:
    """A text is cut around gold's entities; the model, which does not know them, cuts it at every full stop."""
    drug, place, around = Entity("Drug", ((0, 2),)), Entity("Place", ((6, 7),)), Entity("Place", ((3, 5),))
    words = ("aspirin", "acid", "came", ".", "then", "near", "oslo", ".")
    gold = [Sentence("d-1", words, (drug, place, around), document="d", position=0)]
    found = [
        Sentence("d-1", words[:4], (drug,), document="d", position=0),
        Sentence("d-2", words[4:], (Entity("Place", ((2, 3),)),), document="d", position=1),
    ]
    sections = model_sections(model("static"), gold, found)
    columns = sections[0].tables["entities"].columns
    rows = [dict(zip(columns, row, strict=True)) for row in sections[0].tables["entities"].rows]
    assert [(row["start"], row["end"], row["found"]) for row in rows] == [(0, 2, 1), (6, 7, 1), (3, 5, 0)]


def test_what_is_read_beside_gold_is_cut_as_gold_is(tmp_path: Path) -> None:
    """Sentences of another cut would stand at other positions of the document, and some of its words be read twice."""
    (tmp_path / "a.txt").write_text("It rained. Then many came. Aspirin acid was seen near oslo.")
    (tmp_path / "a.ann").write_text("T1\tPlace 9 15\t. Then\n")
    done = predict_split(Predictor(model("static"), "cpu"), tmp_path)
    assert len(done.predicted) == 3
    assert [sentence.text.strip() for sentence in done.context] == [
        "It rained. Then many came.",
        "Aspirin acid was seen near oslo.",
    ]


def test_predictions_must_be_those_of_the_sentences() -> None:
    with pytest.raises(SpanwiseError, match="no id of the predictions"):
        model_sections(model("static"), GOLD, sentences(20, seed=1, first=100))


def test_sentences_without_entities_are_told_in_words() -> None:
    sections = parts_of(model("static"), [Sentence("s", ("it", "rained"))])
    assert not any(section.figures for section in sections.values())
    assert "no probability" in sections["probabilities"].text
    assert "Too few" in sections["vectors"].text


def test_predictions_without_scores_have_no_calibration() -> None:
    section = calibration_section(GOLD, GOLD)
    assert not section.figures
    assert "no score" in section.text


def test_calibration_says_what_the_numbers_are() -> None:
    words = ("a", "b", "c", "d")
    gold = [Sentence("s", words, (Entity("X", ((0, 1),)), Entity("X", ((1, 2),))))]
    found = [Sentence("s", words, (Entity("X", ((0, 1),), 0.9), Entity("X", ((2, 3),), 0.7)))]
    section = calibration_section(gold, found)
    assert (
        "2 predictions have a mean score of 0.800, and 0.500 of them are right: on the whole scores are 0.300 too high"
        in section.text
    )
    assert [row[0] for row in section.tables["thresholds"].rows] == [0.9, 0.7]
    draw([section])
