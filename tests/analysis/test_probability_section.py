"""Numbers of the violin and volcano figures, computed by hand."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from tiny import model

from spanwise.analysis import probability_section as module
from spanwise.analysis.probability_section import MIN_PROBABILITY, discrepancy, gold_probabilities, probability_section
from spanwise.analysis.sample import correct_entities
from spanwise.core.types import Entity, Sentence
from spanwise.prediction.span_vectors import SentenceVectors


def test_discrepancy_by_hand() -> None:
    """p = (0.7, 0.2, 0.1): the mean is 1/3, the variance 0.54 / 3 - 1 / 9 = 0.0688…"""
    p = np.array([0.7, 0.2, 0.1])
    result = discrepancy(np.stack((p, p, p)), np.array([0, 1, 2]))
    variance = 0.54 / 3 - 1 / 9
    assert result.predicted_classes.tolist() == [0, 0, 0]
    assert result.ratio.tolist() == pytest.approx([0, log2(3.5), log2(7)])
    assert result.desire.tolist() == pytest.approx([variance / 0.7, variance / 0.2, variance / 0.1])
    assert result.tags == ["Stable", "Up", "Up"]


def test_zero_probabilities_are_clipped() -> None:
    result = discrepancy(np.array([[1.0, 0.0]]), np.array([1]))
    assert result.ratio[0] == pytest.approx(-log2(MIN_PROBABILITY))
    assert result.desire[0] == pytest.approx(0.25 / MIN_PROBABILITY)


def test_section_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four gold entities: one found, one less probable than no entity, one dropped by decoding, one too wide."""
    words = ("a", "b", "c", "d")
    drug, place, dropped, wide = (
        Entity(type, (span,)) for type, span in (("Drug", (0, 1)), ("Place", (1, 2)), ("Place", (2, 3)), ("Drug", (0, 4)))
    )
    gold = [Sentence("s0", words), Sentence("s1", words, (drug, place, dropped, wide, drug))]
    predicted = [Sentence("s0", words), Sentence("s1", words, (Entity("Drug", ((0, 1),), 0.8),))]

    def fake_probabilities(
        model: object, sentences: list[Sentence], spans: object, *, context: object
    ) -> list[SentenceVectors]:
        assert [sentence.id for sentence in sentences] == ["s1"]  # the other has no entities
        rows = [[0.8, 0.1, 0.1], [0.125, 0.25, 0.625], [0.1, 0.5, 0.4]]
        return [SentenceVectors(np.array([(0, 1), (1, 2), (2, 3)]), np.array(rows, np.float32))]

    monkeypatch.setattr(module, "span_probabilities", fake_probabilities)
    tiny = model("static")  # with the types Drug and Place
    correct = correct_entities(gold, predicted)
    probabilities = gold_probabilities(tiny, gold, correct)
    assert probabilities.classes == ("Drug", "Place", "no entity")
    assert [entity for _, entity in probabilities.entities] == [drug, place, dropped]
    assert probabilities.of_gold.tolist() == pytest.approx([0.8, 0.25, 0.5])
    assert probabilities.is_found.tolist() == [True, False, False]
    assert probabilities.unscored == 1

    section = probability_section(tiny, gold, correct)
    assert set(section.figures) == {"violin", "volcano", "pca"}
    tags = {row[0]: row[1:3] for row in section.tables["tags"].rows}
    assert tags == {"Up": (1, 0), "Stable": (2, 1), "Down": (0, 0)}
    by_type = {(row[0], row[2]): (row[3], row[5]) for row in section.tables["by_type"].rows}
    assert by_type["all types", "missed"] == (2, pytest.approx(0.375))
    assert by_type["Drug", "found"] == (1, pytest.approx(0.8))
    assert by_type["Drug", "missed"] == (0, None)
    row = dict(zip(section.tables["entities"].columns, section.tables["entities"].rows[1], strict=True))
    assert row["most_probable"] == "no entity"
    assert row["log2(p_pred / p_gold)"] == pytest.approx(log2(2.5), abs=1e-6)
    assert "0.800 for found entities (1) and 0.375 for missed entities (2)" in section.text
    assert "Gold entities without a probability: 1 (" in section.text
    assert "Entities missed although their type was the most probable: 1;" in section.text
