"""Error types, matching of errors, and properties of all error analyses."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations, product
from typing import Any

import pytest
from cases import limit_cpu
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import Entity, Sentence, Span
from spanwise.evaluation import ERROR_TYPES, OUTCOMES, ErrorAnalysis, Score, analyze_errors, evaluate
from spanwise.evaluation.matching import Match, Mention, match_errors

WORDS = tuple("abcdefgh")
Mark = tuple[str, tuple[tuple[int, int], ...]]


def mark(type: str, *spans: tuple[int, int]) -> Mark:
    return type, spans


def sentence(*marks: Mark, id: str = "s", words: tuple[str, ...] = WORDS, scores: tuple[float, ...] = ()) -> Sentence:
    all_scores = (*scores, *[None] * len(marks))
    entities = tuple(Entity(*mark, score=score) for mark, score in zip(marks, all_scores, strict=False))  # type: ignore[arg-type]
    return Sentence(id, words, entities)


def matched(gold: list[Mark], predicted: list[Mark]) -> list[tuple[str, Mark | None, Mark | None]]:
    """Outcome, gold entity and prediction of each match in one sentence."""
    result = analyze_errors([sentence(*gold)], [sentence(*predicted)])
    return [(match.outcome, as_mark(match.gold), as_mark(match.predicted)) for match in result.matches]


def as_mark(mention: Mention | None) -> Mark | None:
    return None if mention is None else (mention.type, tuple((span.start, span.end) for span in mention.spans))


X, Y = mark("X", (1, 3)), mark("Y", (1, 3))


@pytest.mark.parametrize(
    ("gold", "predicted", "outcome"),
    [
        ([X], [X], "correct"),
        ([X], [Y], "type"),
        ([X], [mark("X", (1, 4))], "boundary"),  # too long
        ([X], [mark("X", (1, 2))], "boundary"),  # too short
        ([X], [mark("X", (2, 5))], "boundary"),  # crossing
        ([X], [mark("Y", (2, 5))], "both"),
        ([], [X], "spurious"),
        ([X], [], "missed"),
    ],
)
def test_each_outcome(gold: list[Mark], predicted: list[Mark], outcome: str) -> None:
    assert matched(gold, predicted) == [(outcome, gold[0] if gold else None, predicted[0] if predicted else None)]
    counts = analyze_errors([sentence(*gold)], [sentence(*predicted)]).counts
    assert counts == {name: int(name == outcome) for name in OUTCOMES}


def test_adjacent_entities_do_not_match() -> None:
    assert matched([X], [mark("X", (3, 5))]) == [("missed", X, None), ("spurious", None, mark("X", (3, 5)))]


def test_a_split_entity_is_a_boundary_error_and_a_spurious_entity() -> None:
    whole, longer, shorter = mark("X", (0, 5)), mark("X", (0, 3)), mark("X", (3, 5))
    assert matched([whole], [longer, shorter]) == [("boundary", whole, longer), ("spurious", None, shorter)]


def test_merged_entities_are_a_boundary_error_and_a_missed_entity() -> None:
    longer, shorter, whole = mark("X", (0, 3)), mark("X", (3, 5)), mark("X", (0, 5))
    assert sorted(matched([longer, shorter], [whole])) == [("boundary", longer, whole), ("missed", shorter, None)]


def test_correct_entities_match_no_errors() -> None:
    outer, inner = mark("X", (0, 5)), mark("X", (1, 2))
    # An extra prediction inside or around a correct entity.
    assert matched([outer], [outer, inner]) == [("correct", outer, outer), ("spurious", None, inner)]
    assert matched([inner], [outer, inner]) == [("spurious", None, outer), ("correct", inner, inner)]
    # A missed entity inside a correct one.
    assert matched([outer, inner], [outer]) == [("correct", outer, outer), ("missed", inner, None)]
    # A second type on the words of a correct entity.
    assert matched([X], [X, Y]) == [("correct", X, X), ("spurious", None, Y)]


def test_nested_entities_with_wrong_boundaries() -> None:
    outer, inner = mark("X", (0, 6)), mark("Y", (0, 2))
    # Each prediction matches the gold entity with the highest overlap.
    assert matched([outer, inner], [mark("X", (0, 5)), mark("Y", (0, 3))]) == [
        ("boundary", inner, mark("Y", (0, 3))),
        ("boundary", outer, mark("X", (0, 5))),
    ]


def test_fewer_corrections_take_precedence() -> None:
    prediction = mark("X", (0, 4))
    near, far = mark("Y", (0, 5)), mark("X", (3, 8))  # 4 of 5 words in common with another type, 1 of 8 with the same
    assert sorted(matched([near, far], [prediction])) == [("boundary", far, prediction), ("missed", near, None)]
    # The same words take precedence over the same type.
    same = mark("Y", (0, 4))
    assert sorted(matched([same, mark("X", (0, 5))], [prediction])) == [
        ("missed", mark("X", (0, 5)), None),
        ("type", same, prediction),
    ]


def test_higher_overlap_and_earlier_position_take_precedence() -> None:
    assert match_errors([mark("X", (0, 2)), mark("X", (2, 5))], [mark("X", (1, 5))]) == [  # type: ignore[list-item]
        ("boundary", mark("X", (2, 5)), mark("X", (1, 5)))
    ]
    assert match_errors([mark("X", (2, 4)), mark("X", (0, 2))], [mark("X", (1, 3))]) == [  # type: ignore[list-item]
        ("boundary", mark("X", (0, 2)), mark("X", (1, 3)))
    ]
    # Several wrong types on the same words match in alphabetical order, as in the confusion matrix.
    assert match_errors([Y, X], [mark("B", (1, 3)), mark("A", (1, 3))]) == [  # type: ignore[list-item]
        ("type", X, mark("A", (1, 3))),
        ("type", Y, mark("B", (1, 3))),
    ]


ITEMS = st.sets(
    st.tuples(
        st.sampled_from("XY"),
        st.sets(st.integers(0, 7), min_size=1).map(lambda words: Entity("X", [(w, w + 1) for w in sorted(words)]).fragments),
    ),  # type: ignore[arg-type]
    max_size=5,
)


@settings(max_examples=100, deadline=None)
@given(ITEMS, ITEMS)
def test_errors_are_matched_as_if_all_pairs_were_compared(gold: set[Any], predicted: set[Any]) -> None:
    def words(item: Any) -> set[int]:
        return {word for start, end in item[1] for word in range(start, end)}

    pairs = []
    for one, other in product(gold, predicted):
        if common := words(one) & words(other):
            error = "type" if words(one) == words(other) else "boundary" if one[0] == other[0] else "both"
            overlap = len(common) / len(words(one) | words(other))
            pairs.append(((ERROR_TYPES.index(error), -overlap, one[1], other[1], one[0], other[0]), (error, one, other)))
    expected: list[Any] = []
    for _, row in sorted(pairs):
        if all(row[1] != one and row[2] != other for _, one, other in expected):
            expected.append(row)
    assert match_errors(gold, predicted) == expected


def test_twenty_thousand_errors_in_a_sentence_are_matched_in_little_time() -> None:
    gold = [("X", (Span(4 * index, 4 * index + 2),)) for index in range(20_000)]
    predicted = [("X", (Span(4 * index + 1, 4 * index + 3),)) for index in range(20_000)]
    with limit_cpu(5, "errors"):
        matches = match_errors(gold, predicted)
    assert matches == [("boundary", *pair) for pair in zip(gold, predicted, strict=True)]


def test_discontinuous_entities() -> None:
    discontinuous = mark("X", (0, 1), (3, 5))
    # The words between the fragments are not part of the entity.
    assert matched([discontinuous], [mark("X", (1, 3))]) == [
        ("missed", discontinuous, None),
        ("spurious", None, mark("X", (1, 3))),
    ]
    # Missing and additional fragments, and the range without the gap.
    for wrong in (mark("X", (3, 5)), mark("X", (0, 1), (3, 5), (6, 7)), mark("X", (0, 5)), mark("X", (0, 1), (4, 5))):
        assert matched([discontinuous], [wrong]) == [("boundary", discontinuous, wrong)]
    assert matched([discontinuous], [mark("Y", (0, 1), (3, 5))]) == [("type", discontinuous, mark("Y", (0, 1), (3, 5)))]
    assert matched([discontinuous], [mark("Y", (0, 1), (3, 4))]) == [("both", discontinuous, mark("Y", (0, 1), (3, 4)))]
    # "left and right knee": the entities share the last word, and each has its own match.
    left, right = mark("X", (0, 1), (3, 4)), mark("X", (2, 4))
    assert sorted(matched([left, right], [mark("Y", (0, 1), (3, 4)), mark("X", (1, 4))])) == [
        ("boundary", right, mark("X", (1, 4))),
        ("type", left, mark("Y", (0, 1), (3, 4))),
    ]


def test_error_rates_of_equation_24() -> None:
    gold = [sentence(X, mark("X", (4, 6)), mark("X", (7, 8)))]
    predicted = [sentence(Y, mark("X", (4, 5)), mark("X", (7, 8)), mark("Z", (0, 1)), mark("Z", (6, 7)))]
    result = analyze_errors(gold, predicted)
    # One type error and one boundary error, each a false positive and a false negative, and two spurious: FP + FN = 4 + 2.
    assert result.false_count == 6
    assert result.rates == pytest.approx({"type": 1 / 6, "boundary": 1 / 6, "both": 0, "spurious": 2 / 6, "missed": 0})
    assert result.published_rates == pytest.approx({"type": 1 / 6, "boundary": 1 / 6})


def test_published_counts_do_not_match_one_to_one() -> None:
    whole, pieces = mark("X", (0, 5)), [mark("X", (0, 3)), mark("X", (3, 5))]
    result = analyze_errors([sentence(whole)], [sentence(*pieces)])
    assert (result.published_boundary, result.published_type) == (2, 0)  # both parts overlap the gold entity
    result = analyze_errors([sentence(X)], [sentence(X, Y, mark("Z", (2, 4)), mark("Z", (3, 4)))])
    assert (result.published_boundary, result.published_type) == (1, 1)  # although the gold entity was predicted correctly


def test_rates_without_errors_are_zero() -> None:
    assert set(analyze_errors([sentence(X)], [sentence(X)]).rates.values()) == {0.0}
    assert analyze_errors([], []).rates["missed"] == 0.0


def test_most_confident_errors() -> None:
    gold = [sentence(X), sentence(mark("X", (0, 1)), id="t")]
    predicted = [sentence(X, Y, scores=(0.99, 0.4)), sentence(mark("X", (0, 2)), mark("Z", (5, 6)), id="t", scores=(0.8,))]
    result = analyze_errors(gold, predicted)
    assert result.has_scores
    assert [(match.sentence.id, match.outcome, match.mention.score) for match in result.most_confident()] == [
        ("t", "boundary", 0.8),
        ("s", "spurious", 0.4),
    ]
    assert len(result.most_confident(1)) == 1
    without_scores = analyze_errors(gold, [sentence(Y)])
    assert not without_scores.has_scores
    assert without_scores.most_confident() == []


def test_most_frequent_errors() -> None:
    words = ("rain", "in", "New", "York")
    gold = [sentence(mark("Place", (2, 4)), id=str(n), words=words) for n in range(3)]
    predicted = [sentence(mark("Team", (2, 4)), id=str(n), words=words) for n in range(2)]
    predicted += [sentence(mark("Place", (3, 4)), mark("Weather", (0, 1)), id="2", words=words)]
    records = [error.to_json() for error in analyze_errors(gold, predicted).most_frequent()]
    assert records[0] == {
        "outcome": "type",
        "count": 2,
        "gold": {"type": "Place", "text": "New York"},
        "predicted": {"type": "Team", "text": "New York"},
        "sentence": "0",
        "text": "rain in New York",
    }
    assert [(r["outcome"], r["count"], r["gold"] and r["gold"]["text"], r["predicted"]["text"]) for r in records[1:]] == [
        ("spurious", 1, None, "rain"),
        ("boundary", 1, "New York", "York"),
    ]


def test_json() -> None:
    gold, predicted = [sentence(X, mark("X", (5, 6), (7, 8)))], [sentence(Y, mark("Z", (0, 1)), scores=(0.5,))]
    result = analyze_errors(gold, predicted)
    records = json.loads(json.dumps([match.to_json() for match in result.matches]))
    assert {
        "outcome": "type", "sentence": "s", "sentence_index": 0, "text": "a b c d e f g h",
        "gold": {"type": "X", "spans": [[1, 3]], "text": "b c"},
        "predicted": {"type": "Y", "spans": [[1, 3]], "text": "b c", "score": 0.5},
    } in records  # fmt: skip
    assert {"type": "X", "spans": [[5, 6], [7, 8]], "text": "f h"} in [record["gold"] for record in records]
    record = json.loads(json.dumps(result.to_json()))
    assert record["counts"]["missed"] == 1
    assert len(record["most_confident"]) == 1


def test_differently_tokenised_predictions_have_gold_spans() -> None:
    gold = Sentence("s", ("New-York", "has", "rain"), (Entity("Place", ((0, 1),)),), text="New-York  has rain")  # type: ignore[arg-type]
    predicted = Sentence("s", ("New", "-", "York", "has", "rain"), (Entity("Place", ((2, 4),)), Entity("Weather", ((4, 5),))))  # type: ignore[arg-type]
    first, second = analyze_errors([gold], [predicted]).matches
    assert (first.outcome, first.predicted and first.predicted.text) == ("boundary", "York  has")
    assert first.predicted is not None
    assert first.predicted.spans == ((0, 2),)
    assert (second.outcome, second.mention.text, second.mention.spans) == ("spurious", "rain", ((2, 3),))


def test_predictions_of_parts_of_a_word_are_in_text_order() -> None:
    marks = [mark("X", (start, start + 1)) for start in range(8)]
    predicted = sentence(*marks, words=tuple("aaaaaaaa"), scores=tuple(range(8)))
    matches = analyze_errors([sentence(words=("aaaaaaaa",))], [predicted]).matches
    assert [match.mention.score for match in matches] == list(range(8))


def test_differently_split_sentences() -> None:
    gold = [
        Sentence("1", ("sun", "and", "rain"), (Entity("W", ((0, 1),)),)),  # type: ignore[arg-type]
        Sentence("2", ("rain", "again"), (Entity("W", ((0, 1),)),)),  # type: ignore[arg-type]
    ]
    predicted = [Sentence("x", ("sun", "and", "rain", "rain", "again"), (Entity("W", ((0, 1),)), Entity("W", ((2, 4),))))]  # type: ignore[arg-type]
    first, second = analyze_errors(gold, predicted).matches
    assert (first.outcome, first.sentence_index, first.sentence.id) == ("correct", 0, "1")
    # The prediction starts in the first sentence, but its match is in the sentence of the gold entity.
    assert (second.outcome, second.sentence_index, second.sentence.id) == ("boundary", 1, "2")
    assert second.predicted is not None
    assert (second.predicted.spans, second.predicted.text) == (((0, 1),), "rain rain")


# Properties of any predictions.


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[Sentence], list[Sentence]]:
    marks = st.tuples(st.sampled_from("XYZ"), st.sets(st.integers(0, 6), min_size=1, max_size=4))

    def side(id: str) -> Sentence:
        rows = draw(st.lists(marks, max_size=5))
        return sentence(*(mark(type, *((n, n + 1) for n in sorted(words))) for type, words in rows), id=id)

    count = draw(st.integers(0, 3))
    gold = [side(str(n)) for n in range(count)]
    predicted = [
        Sentence(s.id, s.words, (*(e for e in s.entities if draw(st.booleans())), *side(s.id).entities)) for s in gold
    ]  # fmt: skip
    return gold, predicted


@settings(max_examples=100, deadline=None)
@given(sides())
def test_properties_of_matches(data: Any) -> None:
    gold, predicted = data
    result = analyze_errors(gold, predicted)
    check_that_every_entity_is_in_one_match(gold, predicted, result)
    for match in result.matches:
        check_that_the_outcome_follows_from_types_and_words(match)
    check_that_spurious_and_missed_entities_do_not_overlap(result)


def check_that_every_entity_is_in_one_match(gold: list[Sentence], predicted: list[Sentence], result: ErrorAnalysis) -> None:
    for side, name in ((gold, "gold"), (predicted, "predicted")):
        mentions = [(match.sentence_index, getattr(match, name)) for match in result.matches if getattr(match, name)]
        rows = Counter((index, mention.type, mention.spans) for index, mention in mentions)
        assert rows == Counter({(n, e.type, e.fragments) for n, s in enumerate(side) for e in s.entities})
    counts = result.counts
    matched_errors = counts["type"] + counts["boundary"] + counts["both"]
    assert result.false_count == 2 * matched_errors + counts["spurious"] + counts["missed"]
    evaluation = evaluate(gold, predicted)
    assert result.score == evaluation.entities.micro
    # Type errors agree with the confusion matrix.
    assert counts["type"] == sum(count for _, _, count in result.confusion.type_errors)
    assert result.confusion == evaluation.confusion


def check_that_the_outcome_follows_from_types_and_words(match: Match) -> None:
    if match.gold is None or match.predicted is None:
        assert match.outcome == ("missed" if match.gold else "spurious")
        return
    gold_words, words = ({n for span in mention.spans for n in range(*span)} for mention in (match.gold, match.predicted))
    assert gold_words & words
    expected = {(True, True): "correct", (False, True): "type", (True, False): "boundary", (False, False): "both"}
    assert match.outcome == expected[match.gold.type == match.predicted.type, gold_words == words]


def check_that_spurious_and_missed_entities_do_not_overlap(result: ErrorAnalysis) -> None:
    """Otherwise they would match."""
    words_by_outcome: dict[tuple[int, str], list[set[int]]] = {}
    for match in result.matches:
        words = {n for span in match.mention.spans for n in range(*span)}
        words_by_outcome.setdefault((match.sentence_index, match.outcome), []).append(words)
    for (index, outcome), rows in words_by_outcome.items():
        if outcome == "spurious":
            assert all(not words & other for words in rows for other in words_by_outcome.get((index, "missed"), []))


def test_the_order_of_entities_does_not_matter() -> None:
    gold = [mark("X", (0, 3)), mark("Y", (2, 5)), mark("X", (4, 7))]
    predicted = [mark("X", (1, 4)), mark("Y", (3, 6)), mark("Z", (2, 5))]
    results = {tuple(matched(list(g), list(p))) for g in permutations(gold) for p in permutations(predicted)}
    assert len(results) == 1


def test_entities_of_sentences_without_predictions_are_missed() -> None:
    result: ErrorAnalysis = analyze_errors([sentence(X), sentence(X, id="t")], [sentence(X)])
    assert result.counts["missed"] == 1
    assert result.score == Score(support=2, predicted=1, correct=1)
