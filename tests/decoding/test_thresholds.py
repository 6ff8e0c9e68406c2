"""Thresholds, and the indices of links between sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise import Entity, Link, Relation, Sentence
from spanwise.decoding.thresholds import Threshold, best_threshold
from spanwise.evaluation import apply_threshold, evaluate

WORDS = ("Oslo", "and", "York", "and", "Rome")


def entity(word: int, score: float | None = None, type: str = "P") -> Entity:
    return Entity(type, ((word, word + 1),), score)  # type: ignore[arg-type]


def sentence(position: int, *entities: Entity, links: tuple[Link, ...] = (), document: str = "d") -> Sentence:
    return Sentence(f"{document}-{position}", WORDS, entities, links=links, document=document, position=position)


def test_links_follow_their_entities() -> None:
    gold = [sentence(0, entity(0), links=(Link("near", 0, 1, 0),)), sentence(1, entity(2))]
    predicted = [
        sentence(0, entity(4, 0.2), entity(0, 0.9), links=(Link("near", 1, 1, 1),)),
        sentence(1, entity(0, 0.1), entity(2, 0.9), entity(4, 0.9)),
    ]
    for threshold in (0.0, 0.15, 0.5):
        relations = evaluate(gold, apply_threshold(predicted, threshold)).relations
        assert relations is not None
        assert relations.strict.micro.f1 == 1.0, threshold
    first, second = apply_threshold(predicted, 0.5)
    assert (first.links, second.entities) == ((Link("near", 0, 1, 0),), (entity(2), entity(4)))


def test_links_are_dropped_by_tail_and_score() -> None:
    links = (Link("a", 0, 1, 0), Link("b", 0, 1, 1, score=0.4), Link("c", 0, 1, 1, score=0.6), Link("lost", 0, 7, 3))
    predicted = [sentence(0, entity(0, 0.9), links=links), sentence(1, entity(0, 0.1), entity(2, 0.9))]
    # A link to a missing sentence stays: it is a wrong prediction.
    assert next(apply_threshold(predicted, 0.5)).links == (Link("c", 0, 1, 0), Link("lost", 0, 7, 3))
    assert [link.type for link in next(apply_threshold(predicted, {"c": 0.7})).links] == ["a", "b", "lost"]


def test_documents_with_the_same_name() -> None:
    linked = sentence(0, entity(0), links=(Link("near", 0, 1, 1),))
    predicted = [linked, sentence(1, entity(0, 0.1), entity(2)), linked, sentence(1, entity(0, 0.9), entity(2))]
    assert [s.links[0].tail for s in apply_threshold(predicted, 0.5) if s.links] == [0, 1]


def test_sentences_above_the_threshold_are_unchanged() -> None:
    annotated = replace(sentence(0, entity(0, 0.9), links=(Link("a", 0, 1, 0),)), relations=(Relation("r", 0, 0, score=0.8),))
    assert next(apply_threshold([annotated], 0.5)) is annotated
    assert next(apply_threshold([annotated], 0.85)).relations == ()


scores = st.sampled_from([None, 0.1, 0.5, 0.9])


@st.composite
def documents(draw: st.DrawFn) -> list[Sentence]:
    """Sentences of two documents in any order, with entities of distinct types and links between them."""
    counts = {(name, number): draw(st.integers(0, 4)) for name in "de" for number in range(draw(st.integers(1, 3)))}
    predicted = []
    for name, position in draw(st.permutations(sorted(counts))):
        entities = [entity(0, draw(scores), f"{name}{position}{n}") for n in range(counts[name, position])]
        ends = [(number, n) for (other, number), count in counts.items() if other == name for n in range(count)]
        links = [
            Link("l", draw(st.integers(0, len(entities) - 1)), *draw(st.sampled_from(ends)), score=draw(scores))
            for _ in range(draw(st.integers(0, 3)) if entities else 0)
        ]
        predicted.append(sentence(position, *entities, links=tuple(links), document=name))
    return predicted


def linked_types(sentences: list[Sentence]) -> list[tuple[str, str, float | None]]:
    """The types of the two entities of each link, and its score."""
    entities = {(s.document, s.position): s.entities for s in sentences}
    return [
        (s.entities[link.head].type, entities[s.document, link.position][link.tail].type, link.score)
        for s in sentences
        for link in s.links
    ]


@given(documents(), st.sampled_from([0.0, 0.3, 0.6]))
def test_links_keep_their_entities(sentences: list[Sentence], threshold: Threshold) -> None:
    assert isinstance(threshold, float)
    above = {e.type for s in sentences for e in s.entities if e.score is None or e.score >= threshold}
    expected = [
        (head, tail, score)
        for head, tail, score in linked_types(sentences)
        if {head, tail} <= above and (score is None or score >= threshold)
    ]
    assert linked_types(list(apply_threshold(sentences, threshold))) == expected


scored_rows = st.lists(st.tuples(st.sampled_from((0.01, 0.02, 0.1, 0.5, 0.500001, 0.9)), st.booleans()))


@given(scored_rows, st.integers(0, 3), st.sampled_from((None, 0.0, 0.02, 0.1)))
def test_the_best_threshold_is_never_below_the_lowest_one(
    rows: list[tuple[float, bool]], missed: int, lowest: float | None
) -> None:
    """Scores may equal the lowest threshold; those of discontinuous entities may be lower."""
    support = sum(is_correct for _, is_correct in rows) + missed

    def f1(threshold: float) -> float:
        kept = [is_correct for score, is_correct in rows if score >= threshold]
        return 2 * sum(kept) / (len(kept) + support) if kept else 0.0

    best = max((f1(score) for score, _ in rows if lowest is None or score >= lowest), default=0.0)
    threshold = best_threshold(rows, support, lowest)
    assert (threshold is None) == (best == 0)
    if threshold is not None:
        assert threshold >= (lowest or 0.0)
        assert f1(threshold) == pytest.approx(best)
