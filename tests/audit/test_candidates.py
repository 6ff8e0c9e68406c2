"""Disagreements between gold and the models in a sentence."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
from cases import limit_cpu

from spanwise.audit.candidates import Candidate, Key, find_candidates
from spanwise.audit.evidence import UNSCORED, Evidence
from spanwise.audit.span_scores import SpanScores, score_spans
from spanwise.audit.view import AuditView
from spanwise.core.types import Entity, Sentence, Span


@pytest.mark.parametrize(
    ("gold", "odds", "expected"),
    [
        ([], {(0, 1, 0): 3.0}, [Candidate("missing", None, (0, 1, 0), 0.0, 3.0)]),
        ([(0, 1, 0)], {(0, 1, 0): -4.0}, [Candidate("spurious", (0, 1, 0), None, -4.0)]),
        ([(0, 1, 0)], {}, [Candidate("spurious", (0, 1, 0), None, UNSCORED)]),
        ([(0, 1, 0)], {(0, 1, 0): -4.0, (0, 1, 1): 2.0}, [Candidate("type", (0, 1, 0), (0, 1, 1), -4.0, 2.0)]),
        ([(0, 1, 0)], {(0, 1, 0): -4.0, (0, 2, 0): 2.0}, [Candidate("boundary", (0, 1, 0), (0, 2, 0), -4.0, 2.0)]),
        ([(0, 1, 0)], {(0, 1, 0): 2.0}, []),  # agreement
        ([(0, 1, 0)], {(0, 1, 0): 2.0, (0, 2, 0): 1.0}, []),  # gold is more plausible than what overlaps it
        ([], {(0, 1, 0): -3.0}, []),  # not plausible
    ],
)
def test_kinds_of_disagreement(
    gold: list[tuple[int, int, int]], odds: dict[tuple[int, int, int], float], expected: list[Candidate]
) -> None:
    assert find_candidates(gold, odds, is_flat=True) == expected


def test_the_same_words_come_before_other_words_and_a_partner_is_used_once() -> None:
    odds = {(0, 2, 0): -3.0, (0, 2, 1): 1.0, (1, 2, 0): -1.0}
    assert find_candidates([(0, 2, 0)], odds, is_flat=True) == [Candidate("type", (0, 2, 0), (0, 2, 1), -3.0, 1.0)]
    two = {(0, 1, 0): -3.0, (1, 2, 0): -2.0, (0, 2, 0): 4.0}
    kinds = [(c.kind, c.gold) for c in find_candidates([(0, 1, 0), (1, 2, 0)], two, is_flat=True)]
    assert kinds == [("boundary", (0, 1, 0)), ("spurious", (1, 2, 0))]


def test_nested_entities_are_alternatives_only_in_corpora_with_nesting() -> None:
    odds = {(0, 3, 0): 5.0, (0, 1, 0): 2.0, (2, 4, 0): 1.0}
    assert find_candidates([(0, 3, 0)], odds, is_flat=True) == []
    nested = find_candidates([(0, 3, 0)], odds, is_flat=False)
    assert [c.suggestion for c in nested] == [(0, 1, 0)]  # the span that crosses the entity is no alternative


#: Labels of the tests below: Person and Victim, or Person and Suspect, are types of the same spans; Place is not.
PERSON, VICTIM, SUSPECT, PLACE = range(4)
PAIRS = frozenset({frozenset({PERSON, VICTIM}), frozenset({PERSON, SUSPECT})})


@pytest.mark.parametrize(
    ("gold", "odds", "expected"),
    [
        # Gold's type is confirmed: the other one is missing, unless the two exclude each other.
        ([PERSON], {PERSON: 4.0, VICTIM: 1.0}, [("missing", None, VICTIM)]),
        ([VICTIM], {PERSON: 4.0, VICTIM: 1.0}, [("missing", None, PERSON)]),
        ([PERSON], {PERSON: 4.0, PLACE: 1.0}, []),
        ([PERSON, VICTIM], {PERSON: 4.0, VICTIM: 2.0, SUSPECT: 1.0}, []),
        ([PERSON], {PERSON: 4.0, VICTIM: 1.0, SUSPECT: 2.0}, [("missing", None, SUSPECT)]),
        ([], {PERSON: 4.0, VICTIM: 2.0, PLACE: 1.0}, [("missing", None, PERSON), ("missing", None, VICTIM)]),
        # Gold's type is doubtful: only a type that it excludes replaces it.
        ([VICTIM], {PERSON: 4.0, VICTIM: -1.0}, [("spurious", VICTIM, None), ("missing", None, PERSON)]),
        ([PERSON], {PERSON: -4.0, PLACE: 1.0}, [("type", PERSON, PLACE)]),
        ([PERSON, VICTIM], {PERSON: 4.0, VICTIM: -4.0, SUSPECT: 2.0}, [("type", VICTIM, SUSPECT)]),
        ([PERSON, VICTIM], {PERSON: 4.0, VICTIM: -4.0}, [("spurious", VICTIM, None)]),
    ],
)
@pytest.mark.parametrize("is_flat", [True, False])
def test_types_that_spans_have_together_neither_exclude_nor_replace_each_other(
    gold: list[int], odds: dict[int, float], expected: list[tuple[str, int | None, int | None]], is_flat: bool
) -> None:
    keys, scores = [(0, 1, label) for label in gold], {(0, 1, label): value for label, value in odds.items()}
    candidates = find_candidates(keys, scores, is_flat=is_flat, type_pairs=PAIRS)
    differences = [(c.kind, *(None if key is None else key[2] for key in (c.gold, c.suggestion))) for c in candidates]
    assert differences == expected


def test_both_types_of_a_span_move_to_the_same_words() -> None:
    odds = {(0, 2, PERSON): -3.0, (0, 2, VICTIM): -4.0, (0, 3, PERSON): 4.0, (0, 3, VICTIM): 2.0}
    differences = find_candidates([(0, 2, PERSON), (0, 2, VICTIM)], odds, is_flat=True, type_pairs=PAIRS)
    assert [(c.kind, c.gold, c.suggestion) for c in differences] == [
        ("boundary", (0, 2, VICTIM), (0, 3, VICTIM)), ("boundary", (0, 2, PERSON), (0, 3, PERSON)),
    ]  # fmt: skip


def test_log_odds_are_averaged_over_repetitions() -> None:
    def scores(*rows: tuple[int, int, int, int, float]) -> SpanScores:
        columns = np.array(rows).T
        return SpanScores(*columns[:4].astype(np.int32), columns[4].astype(np.float32))

    evidence = Evidence([scores((0, 0, 1, 0, 2.0), (1, 0, 1, 0, 20.0)), scores((0, 0, 1, 0, 1.0), (0, 1, 2, 0, 4.0))], 2)
    assert evidence.sentence(0) == pytest.approx({(0, 1, 0): 1.5, (1, 2, 0): (4.0 + UNSCORED) / 2})
    assert evidence.sentence(1) == pytest.approx({(0, 1, 0): (12.0 + UNSCORED) / 2})  # certainty is limited


def test_spans_that_a_partial_annotation_leaves_open_are_not_missing() -> None:
    row = np.zeros(1, np.int32)
    scores = SpanScores(row, row, row + 1, row, np.full(1, 5, np.float32))

    def kinds(annotated: tuple[str, ...] | tuple[Span, ...] | None) -> list[str]:
        view = AuditView([Sentence("s", ("Oslo", "rains"), annotated=annotated)], ["Place"], Evidence([scores], 1))
        return [candidate.kind for _, candidate in view.candidates]

    assert kinds(None) == kinds(("Place",)) == kinds((Span(0, 1),)) == ["missing"]
    assert kinds(("Person",)) == kinds((Span(1, 2),)) == []


def test_entities_that_are_too_wide_for_the_models_are_trusted() -> None:
    row = np.zeros(1, np.int32)
    evidence = Evidence([SpanScores(row, row, row + 2, row, np.full(1, 5, np.float32))], 1)
    sentence = Sentence("s", ("a", "b", "c"), (Entity("X", ((0, 3),)), Entity("X", ((1, 2),))))
    view = AuditView([sentence], ["X"], evidence)
    assert [(c.kind, c.gold) for _, c in view.candidates] == [("boundary", (1, 2, 0))]


@pytest.mark.parametrize("recipe", ["spanner", "seqner"])
def test_long_sentences_are_scored_in_windows(recipe: str) -> None:
    """The part of a long sentence before the first overlap has the scores of the window alone."""
    model = tiny.model("static", recipe)
    words = tuple(word for sentence in tiny.sentences(150) for word in sentence.words)[:600]
    long, start = Sentence("long", words), Sentence("start", words[:512])
    scores, expected = (score_spans(model, ["Drug", "Place"], [s], [{Span(3, 5)}]) for s in (long, start))
    rows = [
        {row[:4]: row[4] for row in zip(*(column.tolist() for column in table), strict=True) if row[2] <= 384}
        for table in (scores, expected)
    ]  # fmt: skip
    assert rows[0] == pytest.approx(rows[1], abs=1e-4)
    assert len(set(zip(*(column.tolist() for column in scores[:4]), strict=True))) == len(scores.start)
    assert scores.end.max() > 512
    if recipe == "spanner":
        assert {(0, 3, 5, 0), (0, 3, 5, 1)} <= rows[0].keys()  # requested spans have all types


def test_an_entity_that_is_annotated_twice_is_one_entity() -> None:
    """It does not make a corpus one with overlapping entities."""
    oslo = Entity("Place", ((0, 1),))
    view = AuditView([Sentence("s", ("Oslo", "rains"), (oslo, oslo))], ["Place"], Evidence([], 1))
    assert view.gold == [[(0, 1, 0)]]
    assert view.is_flat


def test_a_corpus_is_flat_unless_two_of_its_entities_share_a_word() -> None:
    sentences = [mentions((0, 1), (2, 4)), mentions((3, 4), (0, 2), (2, 3))]
    assert AuditView(sentences, ["X"], Evidence([], 2)).is_flat
    for span in ((0, 4), (1, 3), (2, 3), (3, 4)):
        assert not AuditView([*sentences, mentions((2, 4), (0, 1), span)], ["X"], Evidence([], 3)).is_flat


def with_types(*types: str) -> Sentence:
    return Sentence("s", ("Ada", "slept"), tuple(Entity(type, ((0, 1),)) for type in types))


def test_types_of_a_span_are_decided_from_the_data() -> None:
    """Rare pairs are often annotation errors, and several types of a span are no overlap of spans."""
    row = np.zeros(2, np.int32)
    scores = SpanScores(row, row, row + 1, np.array([0, 1], np.int32), np.full(2, 3, np.float32))

    def view(*others: Sentence) -> AuditView:
        sentences = [with_types("Person"), *others]
        return AuditView(sentences, ["Person", "Victim", "Place"], Evidence([scores], len(sentences)))

    def first_candidates(view: AuditView) -> list[tuple[str, Key | None]]:
        return [(candidate.kind, candidate.suggestion) for index, candidate in view.candidates if index == 0]

    rare = view(with_types("Person", "Victim"))
    regular = view(*[with_types("Person", "Victim")] * 3, with_types("Person", "Place"))
    assert first_candidates(view()) == first_candidates(rare) == []
    assert first_candidates(regular) == [("missing", (0, 1, 1))]
    assert regular.type_pairs == {frozenset({0, 1})}
    assert regular.is_flat


def test_thirty_thousand_entities_in_a_sentence_take_little_time() -> None:
    sentence = mentions(*((index, index + 1) for index in range(30_000)))
    with limit_cpu(5, "entities"):
        view = AuditView([sentence], ["X"], Evidence([], 1))
    assert view.is_flat


def mentions(*spans: tuple[int, int]) -> Sentence:
    return Sentence("s", ("word",) * 30_000, tuple(Entity("X", (span,)) for span in spans))  # type: ignore[arg-type]
