"""Scores ignore predictions that a partially annotated gold sentence leaves open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spanwise import evaluate
from spanwise.core.types import Entity, Link, Relation, Sentence, Span
from spanwise.evaluation.calibration import calibration, score_at_threshold
from spanwise.evaluation.errors import analyze_errors
from spanwise.evaluation.relations import scored_relations
from spanwise.evaluation.tasks import EntityTask
from spanwise.heads.tuned_threshold import choose_threshold

WORDS = ("Ann", "in", "Oslo", "and", "Bo", "in", "Rome")


def entity(type: str, start: int, score: float | None = None) -> Entity:
    return Entity(type, (Span(start, start + 1),), score)


GOLD = Sentence("s", WORDS, (entity("Person", 0), entity("Place", 2)))
PREDICTED = Sentence(
    "s", WORDS, (entity("Person", 0, 0.9), entity("Person", 4, 0.8), entity("Place", 6, 0.7)), (Relation("in", 1, 2, 0.6),)
)


@pytest.mark.parametrize(
    ("marks", "predicted"), [(None, 3), ([[0, 3]], 1), ([[0, 5]], 2), (["Person"], 2), (["Place"], 2), ([], 1)]
)
def test_open_predictions_do_not_count(marks: Any, predicted: int) -> None:
    gold = replace(GOLD, annotated=marks)
    evaluation = evaluate([gold], [PREDICTED])
    micro = evaluation.entities.micro
    assert any("annotated partially" in note for note in evaluation.notes) == (marks is not None)
    assert (micro.support, micro.predicted, micro.correct) == (2, predicted, 1)
    dev = EntityTask(finds_relations=True).score_dev([gold], [PREDICTED])
    assert dev["precision"] == micro.precision
    assert score_at_threshold([gold], [PREDICTED], 0.1).score == micro
    assert calibration([gold], [PREDICTED]).unfiltered.predicted == predicted
    assert len(list(scored_relations([gold], [PREDICTED]))) == (marks is None)
    assert analyze_errors([gold], [PREDICTED]).score == micro


@pytest.mark.parametrize(("marks", "predicted"), [([[0, 3]], 1), (["Place"], 2), ([], 1)])
def test_predictions_with_other_words(marks: Any, predicted: int) -> None:
    """Sentences that are compared by characters keep their marks."""
    words = ("Ann", "in", "Os", "lo", "and", "Bo", "in", "Rome")
    shifted = tuple(Entity(e.type, (Span(e.range.start + (e.range.start > 2), e.range.end + (e.range.start > 2)),))
                    for e in PREDICTED.entities)  # fmt: skip
    retokenised = Sentence("s", words, shifted, text=" ".join(WORDS))
    assert evaluate([replace(GOLD, annotated=marks)], [retokenised]).entities.micro.predicted == predicted


def test_thresholds_ignore_open_predictions() -> None:
    gold = [replace(GOLD, id=f"s{n}", entities=GOLD.entities[:1], annotated=[[0, 1]]) for n in range(60)]
    predicted = [replace(PREDICTED, id=f"s{n}", entities=(entity("Person", 0, 0.42), *[entity("Place", n, 0.41) for n in (5, 6)]), relations=())
                 for n in range(60)]  # fmt: skip
    assert choose_threshold(gold, predicted) == 0.4


def document(first: tuple[Entity, ...], second: tuple[Entity, ...], *links: Link, marks: Any = (None, None)) -> list[Sentence]:
    """Two sentences of a document; the first has the links."""
    return [
        Sentence("1", WORDS, first, links=links, document="d", position=0, annotated=marks[0]),
        Sentence("2", WORDS, second, document="d", position=1, annotated=marks[1]),
    ]


ANN, OSLO, ROME = entity("Person", 0), entity("Place", 2), entity("Place", 6)


@pytest.mark.parametrize(
    ("marks", "first", "second", "link", "predicted", "correct"),
    [
        # An open entity before the tail or the head is dropped; the link still has the same entities.
        ((None, [[2, 3]]), (ANN,), (entity("Word", 1), OSLO), Link("to", 0, 1, 1), 1, 1),
        (([[0, 1]], None), (entity("Word", 1), ANN), (OSLO,), Link("to", 1, 1, 0), 1, 1),
        # A link to or from an open entity is open.
        ((None, [[2, 3]]), (ANN,), (ROME,), Link("to", 0, 1, 0), 0, 0),
        (([[0, 1]], None), (ROME,), (OSLO,), Link("to", 0, 1, 0), 0, 0),
        # So is another link between known entities: only complete sentences have all links.
        ((None, [[2, 3]]), (ANN,), (OSLO,), Link("from", 0, 1, 0), 0, 0),
        ((None, None), (ANN,), (OSLO,), Link("from", 0, 1, 0), 1, 0),
    ],
)
def test_links_of_partially_annotated_sentences(
    marks: Any, first: tuple[Entity, ...], second: tuple[Entity, ...], link: Link, predicted: int, correct: int
) -> None:
    gold = document((ANN,), (OSLO,), Link("to", 0, 1, 0), marks=marks)
    relations = evaluate(gold, document(first, second, link), finds_relations=True).relations
    assert relations is not None
    micro = relations.strict.micro
    assert (micro.support, micro.predicted, micro.correct) == (1, predicted, correct)
