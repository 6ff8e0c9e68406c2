"""Scored spans to entities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise import Entity, Span
from spanwise.decoding.decode import decode, drop_conflicts, text_order


def decoded(rows: list[tuple[int, int, int, int, float]], count: int, policy: str = "overlapping") -> list[tuple[Entity, ...]]:
    columns = [np.array([row[n] for row in rows], np.int64) for n in range(4)]
    return decode(*columns, np.array([row[4] for row in rows], np.float32), count=count, types=("A", "B"), policy=policy)


def test_nothing_found() -> None:
    assert decoded([], 3) == decoded([], 3, "flat") == [(), (), ()]
    assert decoded([], 0) == []


def test_entities_go_to_their_sentences_in_the_order_of_the_text() -> None:
    found = decoded([(2, 4, 5, 0, 0.5), (0, 3, 4, 1, 0.25), (0, 0, 4, 0, 0.75), (0, 0, 2, 0, 0.5), (0, 0, 2, 1, 0.5)], 3)
    assert [[(e.type, *e.range) for e in entities] for entities in found] == [
        [("A", 0, 4), ("A", 0, 2), ("B", 0, 2), ("B", 3, 4)], [], [("A", 4, 5)],
    ]  # fmt: skip
    assert [e.score for e in found[0]] == [0.75, 0.5, 0.5, 0.25]


def test_flat_takes_the_most_probable_first_and_not_the_last() -> None:
    spans = [(0, 0, 3, 0, 0.6), (0, 2, 5, 0, 0.9), (0, 4, 6, 0, 0.8), (0, 5, 6, 1, 0.2)]
    for rows in (spans, spans[::-1]):
        assert [(*e.range, e.type) for e in decoded(rows, 1, "flat")[0]] == [(2, 5, "A"), (5, 6, "B")]
        assert len(decoded(rows, 1)[0]) == 4


def test_nested_drops_what_crosses_a_more_probable_one_and_keeps_what_is_inside() -> None:
    spans = [(0, 0, 3, 0, 0.6), (0, 2, 5, 0, 0.9), (0, 3, 5, 1, 0.8), (0, 4, 6, 0, 0.7), (0, 2, 5, 1, 0.3), (0, 0, 6, 0, 0.1)]
    for rows in (spans, spans[::-1]):
        assert [(*e.range, e.type) for e in decoded(rows, 1, "nested")[0]] == [
            (0, 6, "A"), (2, 5, "A"), (2, 5, "B"), (3, 5, "B"),
        ]  # fmt: skip


def test_sentences_do_not_disturb_each_other() -> None:
    assert [len(entities) for entities in decoded([(0, 0, 3, 0, 0.6), (1, 0, 3, 0, 0.9)], 2, "flat")] == [1, 1]


def test_spans_that_touch_do_not_overlap() -> None:
    assert len(decoded([(0, 0, 2, 0, 0.6), (0, 2, 3, 0, 0.9)], 1, "flat")[0]) == 2


rows = st.lists(
    st.tuples(st.just(0), st.integers(0, 8), st.integers(1, 4), st.integers(0, 1), st.sampled_from([0.25, 0.5, 0.75, 1.0])),
    max_size=12,
)


@given(rows, st.randoms())
def test_flat_is_greedy_complete_and_knows_no_order(some: list[tuple[int, int, int, int, float]], choose: object) -> None:
    spans = [(sentence, start, start + width, label, score) for sentence, start, width, label, score in some]
    (kept,) = decoded(spans, 1, "flat")
    (every,) = decoded(spans, 1)
    for number, entity in enumerate(kept):
        assert not any(entity.range.overlaps(other.range) for other in kept[number + 1 :])
    for entity in every:
        rivals = [other for other in kept if other.range.overlaps(entity.range)]
        assert rivals
        assert max(other.score or 0 for other in rivals) >= (entity.score or 0)
    shuffled = list(spans)
    choose.shuffle(shuffled)  # type: ignore[attr-defined]
    assert decoded(shuffled, 1, "flat")[0] == kept


@given(rows, st.sampled_from(["nested", "flat"]))
def test_what_remains_is_what_remains_when_all_are_compared(some: list[tuple[int, int, int, int, float]], policy: str) -> None:
    spans = [(sentence, start, start + width, label, score) for sentence, start, width, label, score in some]
    literal = drop_conflicts(decoded(spans, 1)[0], {"nested": Span.crosses, "flat": Span.overlaps}[policy])
    assert sorted(decoded(spans, 1, policy)[0], key=text_order) == sorted(literal, key=text_order)


def test_a_score_may_be_missing() -> None:
    some = [Entity("A", ((0, 2),)), Entity("B", ((1, 3),), score=0.1)]
    assert drop_conflicts(some, Span.overlaps) == [Entity("B", ((1, 3),))]
    assert decoded([(0, 0, 1, 0, 1 / 3)], 1)[0][0].score == pytest.approx(1 / 3, abs=1e-6)
