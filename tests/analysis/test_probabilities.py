"""The volcano's and the violin's numbers, worked by hand."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from tiny import model

from spanwise.analysis import probabilities
from spanwise.analysis.probabilities import LOWEST, discrepancy, gold_probabilities, probabilities_part
from spanwise.analysis.sample import found_entities
from spanwise.core.types import Entity, Sentence
from spanwise.prediction.span_vectors import SentenceVectors


def test_the_volcano_by_hand() -> None:
    """p = (0.7, 0.2, 0.1): the mean is 1/3, the variance 0.54 / 3 - 1 / 9 = 0.0688…"""
    p = np.array([0.7, 0.2, 0.1])
    seen = discrepancy(np.stack((p, p, p)), np.array([0, 1, 2]))
    variance = 0.54 / 3 - 1 / 9
    assert seen.predicted.tolist() == [0, 0, 0]
    assert seen.ratio.tolist() == pytest.approx([0, log2(3.5), log2(7)])
    assert seen.desire.tolist() == pytest.approx([variance / 0.7, variance / 0.2, variance / 0.1])
    assert seen.tags == ["Stable", "Up", "Up"]


def test_what_is_thought_impossible_stays_on_the_page() -> None:
    seen = discrepancy(np.array([[1.0, 0.0]]), np.array([1]))
    assert seen.ratio[0] == pytest.approx(-log2(LOWEST))
    assert seen.desire[0] == pytest.approx(0.25 / LOWEST)


def test_entities_tables_and_text_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four gold entities: one found, one whose NONE is likelier, one that decoding dropped, one too wide to be judged."""
    words = ("a", "b", "c", "d")
    drug, place, dropped, wide = (
        Entity(kind, (span,)) for kind, span in (("Drug", (0, 1)), ("Place", (1, 2)), ("Place", (2, 3)), ("Drug", (0, 4)))
    )
    gold = [Sentence("s0", words), Sentence("s1", words, (drug, place, dropped, wide, drug))]
    found = [Sentence("s0", words), Sentence("s1", words, (Entity("Drug", ((0, 1),), 0.8),))]

    def answer(model: object, sentences: list[Sentence], spans: object, *, context: object) -> list[SentenceVectors]:
        assert [sentence.id for sentence in sentences] == ["s1"]  # the other has no entities
        rows = [[0.8, 0.1, 0.1], [0.125, 0.25, 0.625], [0.1, 0.5, 0.4]]
        return [SentenceVectors(np.array([(0, 1), (1, 2), (2, 3)]), np.array(rows, np.float32))]

    monkeypatch.setattr(probabilities, "span_probabilities", answer)
    tiny = model("static")  # knows Drug and Place
    right = found_entities(gold, found)
    judged = gold_probabilities(tiny, gold, right)
    assert judged.classes == ("Drug", "Place", "no entity")
    assert [entity for _, entity in judged.entities] == [drug, place, dropped]
    assert judged.of_gold.tolist() == pytest.approx([0.8, 0.25, 0.5])
    assert judged.found.tolist() == [True, False, False]
    assert judged.unjudged == 1

    part = probabilities_part(tiny, gold, right)
    assert set(part.figures) == {"violin", "volcano", "pca"}
    tags = {row[0]: row[1:3] for row in part.tables["tags"].rows}
    assert tags == {"Up": (1, 0), "Stable": (2, 1), "Down": (0, 0)}
    by_type = {(row[0], row[2]): (row[3], row[5]) for row in part.tables["by_type"].rows}
    assert by_type["all types", "missed"] == (2, pytest.approx(0.375))
    assert by_type["Drug", "found"] == (1, pytest.approx(0.8))
    assert by_type["Drug", "missed"] == (0, None)
    row = dict(zip(part.tables["entities"].columns, part.tables["entities"].rows[1], strict=True))
    assert row["likeliest"] == "no entity"
    assert row["log2(p_pred / p_gold)"] == pytest.approx(log2(2.5), abs=1e-6)
    assert "0.800 for the 1 that were found and 0.375 for the 2 that were missed" in part.text
    assert "1 more were never judged" in part.text
    assert "1 were missed although their type was the likeliest" in part.text
