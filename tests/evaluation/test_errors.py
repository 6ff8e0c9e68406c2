"""Every kind of mistake by hand, who is whose partner, and what must hold of all mistakes."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spanwise import Entity, Sentence
from spanwise.evaluation import KINDS, Errors, Score, errors, evaluate
from spanwise.evaluation.judging import partners

WORDS = tuple("abcdefgh")
Mark = tuple[str, tuple[tuple[int, int], ...]]


def mark(type: str, *spans: tuple[int, int]) -> Mark:
    return type, spans


def sentence(*marks: Mark, id: str = "s", words: tuple[str, ...] = WORDS, scores: tuple[float, ...] = ()) -> Sentence:
    own = (*scores, *[None] * len(marks))
    return Sentence(id, words, tuple(Entity(*each, score=score) for each, score in zip(marks, own, strict=False)))  # type: ignore[arg-type]


def judged(gold: list[Mark], found: list[Mark]) -> list[tuple[str, Mark | None, Mark | None]]:
    """Kind, gold entity and prediction of each judgement on one sentence."""
    result = errors([sentence(*gold)], [sentence(*found)])
    return [
        (one.kind, *((claim.type, tuple(map(tuple, claim.spans))) if claim else None for claim in (one.gold, one.predicted)))
        for one in result.judgements
    ]  # type: ignore[misc]


X, Y = mark("X", (1, 3)), mark("Y", (1, 3))


@pytest.mark.parametrize(
    ("gold", "found", "kind"),
    [
        ([X], [X], "correct"),
        ([X], [Y], "type"),
        ([X], [mark("X", (1, 4))], "boundary"),  # a word too many
        ([X], [mark("X", (1, 2))], "boundary"),  # one too few
        ([X], [mark("X", (2, 5))], "boundary"),  # crossing
        ([X], [mark("Y", (2, 5))], "both"),
        ([], [X], "spurious"),
        ([X], [], "missed"),
    ],
)
def test_each_kind(gold: list[Mark], found: list[Mark], kind: str) -> None:
    assert judged(gold, found) == [(kind, gold[0] if gold else None, found[0] if found else None)]
    counts = errors([sentence(*gold)], [sentence(*found)]).counts
    assert counts == {name: int(name == kind) for name in KINDS}


def test_neighbours_have_no_word_in_common() -> None:
    assert judged([X], [mark("X", (3, 5))]) == [("missed", X, None), ("spurious", None, mark("X", (3, 5)))]


def test_an_entity_found_in_two_pieces_is_one_boundary_error_and_a_spurious_entity() -> None:
    whole, longer, shorter = mark("X", (0, 5)), mark("X", (0, 3)), mark("X", (3, 5))
    assert judged([whole], [longer, shorter]) == [("boundary", whole, longer), ("spurious", None, shorter)]


def test_two_entities_taken_for_one() -> None:
    longer, shorter, whole = mark("X", (0, 3)), mark("X", (3, 5)), mark("X", (0, 5))
    assert sorted(judged([longer, shorter], [whole])) == [("boundary", longer, whole), ("missed", shorter, None)]


def test_what_is_right_is_nobody_s_partner() -> None:
    outer, inner = mark("X", (0, 5)), mark("X", (1, 2))
    # Too many inside one that was found, and around one that was found.
    assert judged([outer], [outer, inner]) == [("correct", outer, outer), ("spurious", None, inner)]
    assert judged([inner], [outer, inner]) == [("spurious", None, outer), ("correct", inner, inner)]
    # Too few.
    assert judged([outer, inner], [outer]) == [("correct", outer, outer), ("missed", inner, None)]
    # A second type on words that have one already.
    assert judged([X], [X, Y]) == [("correct", X, X), ("spurious", None, Y)]


def test_nested_entities_that_are_all_wrong() -> None:
    outer, inner = mark("X", (0, 6)), mark("Y", (0, 2))
    # Each is nearest to its own: they do not take each other's partner.
    assert judged([outer, inner], [mark("X", (0, 5)), mark("Y", (0, 3))]) == [
        ("boundary", inner, mark("Y", (0, 3))),
        ("boundary", outer, mark("X", (0, 5))),
    ]


def test_the_fewest_corrections_come_first() -> None:
    claim = mark("X", (0, 4))
    near, far = mark("Y", (0, 5)), mark("X", (3, 8))  # 4 of 5 words in common with another type, 1 of 8 with the same
    assert sorted(judged([near, far], [claim])) == [("boundary", far, claim), ("missed", near, None)]
    # The same words come before all.
    same = mark("Y", (0, 4))
    assert sorted(judged([same, mark("X", (0, 5))], [claim])) == [("missed", mark("X", (0, 5)), None), ("type", same, claim)]


def test_the_most_in_common_then_the_first() -> None:
    assert partners([mark("X", (0, 2)), mark("X", (2, 5))], [mark("X", (1, 5))]) == [  # type: ignore[list-item]
        ("boundary", mark("X", (2, 5)), mark("X", (1, 5)))
    ]
    assert partners([mark("X", (2, 4)), mark("X", (0, 2))], [mark("X", (1, 3))]) == [  # type: ignore[list-item]
        ("boundary", mark("X", (0, 2)), mark("X", (1, 3)))
    ]
    # Several wrong types on the same words: in alphabetical order, as the confusion matrix has them.
    assert partners([Y, X], [mark("B", (1, 3)), mark("A", (1, 3))]) == [  # type: ignore[list-item]
        ("type", X, mark("A", (1, 3))),
        ("type", Y, mark("B", (1, 3))),
    ]


def test_discontinuous_entities() -> None:
    broken = mark("X", (0, 1), (3, 5))
    # The words between the fragments are not its own.
    assert judged([broken], [mark("X", (1, 3))]) == [("missed", broken, None), ("spurious", None, mark("X", (1, 3)))]
    # Too few and too many fragments, and the range without the gap.
    for wrong in (mark("X", (3, 5)), mark("X", (0, 1), (3, 5), (6, 7)), mark("X", (0, 5)), mark("X", (0, 1), (4, 5))):
        assert judged([broken], [wrong]) == [("boundary", broken, wrong)]
    assert judged([broken], [mark("Y", (0, 1), (3, 5))]) == [("type", broken, mark("Y", (0, 1), (3, 5)))]
    assert judged([broken], [mark("Y", (0, 1), (3, 4))]) == [("both", broken, mark("Y", (0, 1), (3, 4)))]
    # "left and right knee": both share the last word, and each has its own partner.
    left, right = mark("X", (0, 1), (3, 4)), mark("X", (2, 4))
    assert sorted(judged([left, right], [mark("Y", (0, 1), (3, 4)), mark("X", (1, 4))])) == [
        ("boundary", right, mark("X", (1, 4))),
        ("type", left, mark("Y", (0, 1), (3, 4))),
    ]


def test_rates_of_equation_24() -> None:
    gold = [sentence(X, mark("X", (4, 6)), mark("X", (7, 8)))]
    found = [sentence(Y, mark("X", (4, 5)), mark("X", (7, 8)), mark("Z", (0, 1)), mark("Z", (6, 7)))]
    result = errors(gold, found)
    # One type error and one boundary error, each a false positive and a false negative, and two spurious: FP + FN = 4 + 2.
    assert result.wrong == 6
    assert result.rates == pytest.approx({"type": 1 / 6, "boundary": 1 / 6, "both": 0, "spurious": 2 / 6, "missed": 0})
    assert result.published_rates == pytest.approx({"type": 1 / 6, "boundary": 1 / 6})


def test_the_paper_s_own_counts_know_no_partners() -> None:
    whole, pieces = mark("X", (0, 5)), [mark("X", (0, 3)), mark("X", (3, 5))]
    result = errors([sentence(whole)], [sentence(*pieces)])
    assert (result.published_boundary, result.published_type) == (2, 0)  # both pieces have fewer words than a gold entity
    result = errors([sentence(X)], [sentence(X, Y, mark("Z", (2, 4)), mark("Z", (3, 4)))])
    assert (result.published_boundary, result.published_type) == (1, 1)  # though the gold entity is found


def test_nothing_wrong_is_a_rate_of_zero() -> None:
    assert set(errors([sentence(X)], [sentence(X)]).rates.values()) == {0.0}
    assert errors([], []).rates["missed"] == 0.0


def test_the_most_confident_mistakes() -> None:
    gold = [sentence(X), sentence(mark("X", (0, 1)), id="t")]
    found = [sentence(X, Y, scores=(0.99, 0.4)), sentence(mark("X", (0, 2)), mark("Z", (5, 6)), id="t", scores=(0.8,))]
    result = errors(gold, found)
    assert result.has_scores
    assert [(one.sentence.id, one.kind, one.claim.score) for one in result.most_confident()] == [
        ("t", "boundary", 0.8),
        ("s", "spurious", 0.4),
    ]
    assert len(result.most_confident(1)) == 1
    bare = errors(gold, [sentence(Y)])
    assert not bare.has_scores
    assert bare.most_confident() == []


def test_the_strings_that_are_confused_most_often() -> None:
    words = ("rain", "in", "New", "York")
    gold = [sentence(mark("Place", (2, 4)), id=str(n), words=words) for n in range(3)]
    found = [sentence(mark("Team", (2, 4)), id=str(n), words=words) for n in range(2)]
    found += [sentence(mark("Place", (3, 4)), mark("Weather", (0, 1)), id="2", words=words)]
    strings = [string.to_json() for string in errors(gold, found).confused_strings()]
    assert strings[0] == {
        "kind": "type",
        "count": 2,
        "gold": {"type": "Place", "text": "New York"},
        "predicted": {"type": "Team", "text": "New York"},
        "sentence": "0",
        "text": "rain in New York",
    }
    assert [(s["kind"], s["count"], s["gold"] and s["gold"]["text"], s["predicted"]["text"]) for s in strings[1:]] == [
        ("spurious", 1, None, "rain"),
        ("boundary", 1, "New York", "York"),
    ]


def test_every_record_is_plain_json() -> None:
    gold, found = [sentence(X, mark("X", (5, 6), (7, 8)))], [sentence(Y, mark("Z", (0, 1)), scores=(0.5,))]
    result = errors(gold, found)
    records = json.loads(json.dumps([one.to_json() for one in result.judgements]))
    assert {
        "kind": "type", "sentence": "s", "number": 0, "text": "a b c d e f g h",
        "gold": {"type": "X", "spans": [[1, 3]], "text": "b c"},
        "predicted": {"type": "Y", "spans": [[1, 3]], "text": "b c", "score": 0.5},
    } in records  # fmt: skip
    assert {"type": "X", "spans": [[5, 6], [7, 8]], "text": "f h"} in [record["gold"] for record in records]
    whole = json.loads(json.dumps(result.to_json()))
    assert whole["counts"]["missed"] == 1
    assert len(whole["most_confident"]) == 1


def test_predictions_in_other_words_stand_in_gold_s_text() -> None:
    gold = Sentence("s", ("New-York", "has", "rain"), (Entity("Place", ((0, 1),)),), text="New-York  has rain")  # type: ignore[arg-type]
    found = Sentence("s", ("New", "-", "York", "has", "rain"), (Entity("Place", ((2, 4),)), Entity("Weather", ((4, 5),))))  # type: ignore[arg-type]
    first, second = errors([gold], [found]).judgements
    assert (first.kind, first.predicted and first.predicted.text) == ("boundary", "York  has")
    assert first.predicted is not None
    assert first.predicted.spans == ((0, 2),)
    assert (second.kind, second.claim.text, second.claim.spans) == ("spurious", "rain", ((2, 3),))


def test_sentences_that_predictions_cut_elsewhere() -> None:
    gold = [
        Sentence("1", ("sun", "and", "rain"), (Entity("W", ((0, 1),)),)),  # type: ignore[arg-type]
        Sentence("2", ("rain", "again"), (Entity("W", ((0, 1),)),)),  # type: ignore[arg-type]
    ]
    found = [Sentence("x", ("sun", "and", "rain", "rain", "again"), (Entity("W", ((0, 1),)), Entity("W", ((2, 4),))))]  # type: ignore[arg-type]
    first, second = errors(gold, found).judgements
    assert (first.kind, first.number, first.sentence.id) == ("correct", 0, "1")
    # The prediction begins in the first sentence; its partner is in the second, and so is the judgement.
    assert (second.kind, second.number, second.sentence.id) == ("boundary", 1, "2")
    assert second.predicted is not None
    assert (second.predicted.spans, second.predicted.text) == (((0, 1),), "rain rain")


# What holds of whatever is predicted.


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[Sentence], list[Sentence]]:
    one = st.tuples(st.sampled_from("XYZ"), st.sets(st.integers(0, 6), min_size=1, max_size=4))

    def side(id: str) -> Sentence:
        rows = draw(st.lists(one, max_size=5))
        return sentence(*(mark(type, *((n, n + 1) for n in sorted(places))) for type, places in rows), id=id)

    count = draw(st.integers(0, 3))
    gold = [side(str(n)) for n in range(count)]
    found = [
        Sentence(s.id, s.words, (*(e for e in s.entities if draw(st.booleans())), *side(s.id).entities)) for s in gold
    ]  # fmt: skip
    return gold, found


@settings(max_examples=300, deadline=None)
@given(sides())
def test_every_entity_is_in_one_judgement(data: Any) -> None:
    gold, found = data
    result = errors(gold, found)
    for side, name in ((gold, "gold"), (found, "predicted")):
        claims = [(one.number, getattr(one, name)) for one in result.judgements if getattr(one, name)]
        rows = Counter((number, claim.type, claim.spans) for number, claim in claims)
        assert rows == Counter({(n, e.type, e.fragments) for n, s in enumerate(side) for e in s.entities})
    counts = result.counts
    paired = counts["type"] + counts["boundary"] + counts["both"]
    assert result.wrong == 2 * paired + counts["spurious"] + counts["missed"]
    assert result.score == evaluate(gold, found).entities.micro
    # Types on the same words are paired as the confusion matrix pairs them.
    assert counts["type"] == sum(count for _, _, count in result.confusion.mistakes)
    assert result.confusion == evaluate(gold, found).confusion


@settings(max_examples=300, deadline=None)
@given(sides())
def test_judgements_say_what_they_are(data: Any) -> None:
    gold, found = data
    for one in errors(gold, found).judgements:
        right, wrong = one.gold, one.predicted
        if right is None or wrong is None:
            assert one.kind == ("missed" if right else "spurious")
            continue
        own, other = ({n for span in claim.spans for n in range(*span)} for claim in (right, wrong))
        assert own & other
        expected = {(True, True): "correct", (False, True): "type", (True, False): "boundary", (False, False): "both"}
        assert one.kind == expected[right.type == wrong.type, own == other]


@settings(max_examples=100, deadline=None)
@given(sides())
def test_no_one_is_left_alone_beside_another_who_is(data: Any) -> None:
    """A spurious and a missed entity of one sentence have no word in common, or they would be partners."""
    gold, found = data
    alone: dict[tuple[int, str], list[set[int]]] = {}
    for one in errors(gold, found).judgements:
        alone.setdefault((one.number, one.kind), []).append({n for span in one.claim.spans for n in range(*span)})
    for (number, kind), rows in alone.items():
        if kind == "spurious":
            assert all(not words & other for words in rows for other in alone.get((number, "missed"), []))


def test_the_order_of_entities_does_not_matter() -> None:
    gold = [mark("X", (0, 3)), mark("Y", (2, 5)), mark("X", (4, 7))]
    found = [mark("X", (1, 4)), mark("Y", (3, 6)), mark("Z", (2, 5))]
    results = {tuple(judged(list(g), list(f))) for g in permutations(gold) for f in permutations(found)}
    assert len(results) == 1


def test_a_sentence_that_was_not_predicted_is_missed() -> None:
    result: Errors = errors([sentence(X), sentence(X, id="t")], [sentence(X)])
    assert result.counts["missed"] == 1
    assert result.score == Score(support=2, predicted=1, correct=1)
