"""Scores from counts."""

from __future__ import annotations

import pytest

from spanwise.core.types import Span
from spanwise.evaluation.confusion import Confusion
from spanwise.evaluation.relaxed import RelaxedTally
from spanwise.evaluation.scores import Macro, Score, Scores, Tally
from spanwise.evaluation.selection import nested, nested_items


def item(type: str, *fragments: tuple[int, int]) -> tuple[str, tuple[Span, ...]]:
    return type, tuple(Span(*fragment) for fragment in fragments)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (Score(0, 0, 0), (0.0, 0.0, 0.0)),
        (Score(3, 0, 0), (0.0, 0.0, 0.0)),
        (Score(0, 3, 0), (0.0, 0.0, 0.0)),
        (Score(3, 3, 0), (0.0, 0.0, 0.0)),
        (Score(3, 3, 3), (1.0, 1.0, 1.0)),
        (Score(8, 4, 2), (2 / 4, 2 / 8, 2 * 2 / (8 + 4))),
    ],
)
def test_score(score: Score, expected: tuple[float, float, float]) -> None:
    assert (score.precision, score.recall, score.f1) == pytest.approx(expected, abs=1e-15)
    assert score.to_json() == {
        "precision": score.precision,
        "recall": score.recall,
        "f1": score.f1,
        "support": score.support,
        "predicted": score.predicted,
        "correct": score.correct,
    }


def test_macro_is_the_mean_over_gold_types() -> None:
    tally = Tally()
    # A: 3 in gold, 2 predicted, 2 correct: P 1, R 2/3, F1 2*2/(3+2) = 4/5. B: 1 in gold, never predicted: zeros.
    # C: not in gold, 2 predicted: zeros, not part of the macro average.
    assert tally.add({("A", 1), ("A", 2)}, {("A", 1), ("A", 2), ("C", 3)}) == (2, 3, 2)
    assert tally.add({("A", 1), ("B", 1)}, {("C", 1)}) == (0, 1, 2)
    scores = tally.scores
    assert list(scores.types.items()) == [("A", Score(3, 2, 2)), ("B", Score(1, 0, 0)), ("C", Score(0, 2, 0))]
    assert scores.micro == Score(4, 4, 2)
    assert scores.macro.types == 2
    assert scores.macro.precision == pytest.approx((1 + 0) / 2)
    assert scores.macro.recall == pytest.approx((2 / 3 + 0) / 2)
    assert scores.macro.f1 == pytest.approx((4 / 5 + 0) / 2)


def test_scores_without_items_are_zero() -> None:
    assert Scores({}).micro == Score(0, 0, 0)
    assert Scores({}).macro == Macro(0.0, 0.0, 0.0, 0)


def test_relaxed_precision_and_recall() -> None:
    tally = RelaxedTally()
    # Gold A[0,4) overlaps two predictions, A[6,8) one, A[10,11) none: it is between two fragments.
    # Gold B[0,4) does not overlap a predicted B. Recall 2/4.
    gold = {item("A", (0, 4)), item("A", (6, 8)), item("A", (10, 11)), item("B", (0, 4))}
    # Correct: A[0,1), A[3,7) and A[7,8)+[12,13); wrong: C[0,4) and B[4,6), which is adjacent to gold's B.
    predicted = {item("A", (0, 1)), item("A", (3, 7)), item("A", (7, 8), (12, 13)), item("C", (0, 4)), item("B", (4, 6))}
    tally.add(gold, predicted)
    score = tally.score
    assert (score.support, score.matched_gold, score.predicted, score.correct) == (4, 2, 5, 3)
    assert score.precision == pytest.approx(3 / 5)
    assert score.recall == pytest.approx(2 / 4)
    assert score.f1 == pytest.approx(2 * (3 / 5) * (2 / 4) / (3 / 5 + 2 / 4))
    assert score.to_json()["matched_gold"] == 2
    assert score.to_json()["recall"] == pytest.approx(2 / 4)


def test_nested_entities_are_inside_a_wider_range() -> None:
    outer, same, left, right = item("A", (2, 8)), item("B", (2, 8)), item("A", (2, 5)), item("A", (5, 8))
    inner, crossing, in_the_gap = item("C", (6, 7)), item("A", (7, 9)), item("D", (10, 11))
    discontinuous = item("E", (9, 10), (11, 12))
    everything = [outer, same, left, right, inner, crossing, in_the_gap, discontinuous]
    assert nested(everything) == {left, right, inner, in_the_gap}
    assert nested([outer, same]) == set()
    assert nested([]) == set()


def test_nested_sides() -> None:
    outer, inner, other = item("A", (0, 5)), item("A", (1, 3)), item("B", (2, 4))
    cut, flat, around = item("A", (0, 4)), item("A", (7, 8)), item("A", (6, 9))
    gold = {outer, inner, other, flat}
    assert nested_items(gold, {inner}) == ({inner, other}, {inner}), "the outer entity may be missing"
    assert nested_items(gold, {cut}) == ({inner, other}, set()), "a wrong boundary is not nested"
    assert nested_items(gold, {outer, cut}) == ({inner, other}, {cut}), "unless it is inside another prediction"
    assert nested_items(gold, {around, flat}) == ({inner, other}, set()), "correct flat entities do not count"


def test_confusion_matches_one_to_one() -> None:
    confusion = Confusion()
    gold = {item("A", (0, 1)), item("B", (0, 1)), item("C", (0, 1)), item("A", (3, 5)), item("D", (6, 7))}
    predicted = {
        item("A", (0, 1)),
        item("E", (0, 1)),
        item("A", (3, 4)),
        item("D", (6, 7)),
        item("F", (6, 7)),
        item("G", (8, 9)),
    }
    confusion.add(gold, predicted)
    # On [0,1): A is correct, B matches E, C is missed. A[3,5) has a wrong boundary: missed and spurious.
    # On [6,7): D is correct, so F is spurious. G is spurious.
    assert confusion.counts == {("A", "A"): 1, ("B", "E"): 1, ("D", "D"): 1}
    assert confusion.missed == {"C": 1, "A": 1}
    assert confusion.spurious == {"A": 1, "F": 1, "G": 1}
    assert confusion.type_errors == [("B", "E", 1)]
    assert confusion.to_json() == {
        "counts": {"A": {"A": 1}, "B": {"E": 1}, "D": {"D": 1}},
        "missed": {"A": 1, "C": 1},
        "spurious": {"A": 1, "F": 1, "G": 1},
    }


def test_type_errors_are_sorted_by_count() -> None:
    confusion = Confusion()
    for _ in range(2):
        confusion.add({item("B", (0, 1))}, {item("A", (0, 1))})
    confusion.add({item("A", (0, 1)), item("A", (2, 3))}, {item("C", (0, 1)), item("B", (2, 3))})
    assert confusion.type_errors == [("B", "A", 2), ("A", "B", 1), ("A", "C", 1)]
