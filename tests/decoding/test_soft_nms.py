"""Soft-NMS compared with Algorithm 1 of the paper, and the additions of the authors' code."""

from __future__ import annotations

import tracemalloc
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise.core.types import Span
from spanwise.decoding import soft_nms
from spanwise.decoding.decode import decode
from spanwise.decoding.soft_nms import SoftNms

Row = tuple[int, int, int, int, float]


def overlap(one: Row, other: Row) -> float:
    left, right = set(range(one[1], one[2])), set(range(other[1], other[2]))
    return len(left & right) / len(left | right)


def algorithm_1(rows: list[Row], decay: float, near: float, threshold: float) -> list[Row]:
    """Traverse the spans of a sentence by score; sort again after every change."""
    rest, output = list(rows), []
    while rest:
        rest.sort(key=lambda row: (-row[4], row))
        best, *rest = rest
        output.append(best)
        rest = [(*row[:4], row[4] * decay) if overlap(best, row) >= near else row for row in rest]
    return sorted(row for row in output if row[4] > threshold)


def run(rows: list[Row], **options: Any) -> list[Row]:
    columns = [np.array([row[n] for row in rows], np.int64) for n in range(4)]
    nms = SoftNms(**{"decay": 0.9, "overlap": 0.7, "threshold": 0.45, **options})
    result = nms(*columns, np.array([row[4] for row in rows], np.float64))
    return list(zip(*(column.tolist() for column in result), strict=True))


def test_worked_by_hand() -> None:
    # 0-4 is best. It overlaps 0-5 by 4/5 and 1-4 by 3/4, which 0-5 overlaps by 3/5 only; 2-6 by 2/6.
    rows = [(0, 0, 4, 0, 0.9), (0, 0, 5, 1, 0.8), (0, 1, 4, 0, 0.49), (0, 2, 6, 0, 0.5)]
    assert run(rows) == [(0, 0, 4, 0, 0.9), (0, 0, 5, 1, pytest.approx(0.72)), (0, 2, 6, 0, 0.5)]
    assert run(rows, decay=1.0) == sorted(rows)
    assert run(rows, overlap=0.3, decay=0.5) == [(0, 0, 4, 0, 0.9)]


def test_lowered_scores_change_the_order() -> None:
    # 0-4 lowers 0-5 below 0-6 but does not affect 0-6. So 0-6 lowers 0-5 once more, and not the reverse.
    rows = [(0, 0, 4, 0, 0.9), (0, 0, 5, 0, 0.8), (0, 0, 6, 0, 0.75)]
    assert run(rows, overlap=0.75, threshold=0.1) == [
        (0, 0, 4, 0, 0.9), (0, 0, 5, 0, pytest.approx(0.8 * 0.81)), (0, 0, 6, 0, 0.75),
    ]  # fmt: skip


scores = st.integers(1, 100).map(lambda number: number / 101)
spans = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(1, 5), st.integers(0, 1), scores),
    max_size=14,
    unique_by=(lambda row: row[:4], lambda row: row[4]),  # no ties, so the order is unique
)


@pytest.mark.parametrize("max_pairs", [0, soft_nms.MAX_PAIRS])
@given(spans, st.sampled_from([0.4, 0.9]), st.sampled_from([0.3, 0.5, 0.7]), st.sampled_from([0.0, 0.45]), st.randoms())
def test_equals_algorithm_1(max_pairs: int, drawn: list[Row], decay: float, near: float, threshold: float, choose: Any) -> None:
    rows = [(sentence, start, start + width, label, score) for sentence, start, width, label, score in drawn]
    expected = []
    for sentence in range(3):
        expected += algorithm_1([row for row in rows if row[0] == sentence], decay, near, threshold)
    choose.shuffle(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(soft_nms, "MAX_PAIRS", max_pairs)
        result = run(rows, decay=decay, overlap=near, threshold=threshold)
    assert [row[:4] for row in result] == [row[:4] for row in expected]
    assert [row[4] for row in result] == pytest.approx([row[4] for row in expected])


def test_memory_does_not_grow_with_the_square_of_the_spans() -> None:
    """At a low threshold, an untrained model proposes thousands of spans in a long sentence."""
    count = 3_000
    start = np.arange(count) // 10
    columns = np.zeros(count, np.int64), start, start + 1 + np.arange(count) % 10, np.zeros(count, np.int64)
    tracemalloc.start()
    try:
        SoftNms(decay=0.9, overlap=0.7, threshold=0.1)(*columns, np.linspace(0.2, 0.9, count))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000 * count, "bytes"


def test_duplicates_count_once() -> None:
    rows = [(0, 0, 2, 0, 0.5), (0, 0, 2, 0, 0.6), (0, 5, 6, 0, 0.2), (0, 5, 6, 0, 0.2), (1, 0, 2, 0, 0.5)]
    assert run(rows) == [(0, 0, 2, 0, 0.6), (1, 0, 2, 0, 0.5)]


def test_counts_duplicates_multiplies_scores() -> None:
    rows = [(0, 0, 2, 0, 0.3), (0, 0, 2, 0, 0.3), (0, 5, 6, 0, 0.3), (1, 0, 1, 0, 0.4), (1, 0, 1, 0, 0.4), (1, 0, 1, 0, 0.4)]
    assert run(rows) == []
    # Only the result is limited to 1; the comparison uses 1.2.
    assert run(rows, counts_duplicates=True) == [(0, 0, 2, 0, pytest.approx(0.6)), (1, 0, 1, 0, 1.0)]


def test_drops_crossing_drops_both() -> None:
    rows = [(0, 0, 3, 0, 0.9), (0, 2, 5, 0, 0.8), (0, 2, 3, 0, 0.7), (0, 5, 6, 0, 0.6), (1, 0, 3, 0, 0.9), (1, 2, 5, 0, 0.4)]
    assert run(rows) == sorted(rows)[:5]
    # 2-3 is inside both; 5-6 is adjacent; one span of sentence 1 is below the threshold.
    assert run(rows, drops_crossing=True) == [(0, 2, 3, 0, 0.7), (0, 5, 6, 0, 0.6), (1, 0, 3, 0, 0.9)]


@given(spans)
def test_drops_crossing_equals_pairwise_comparison(drawn: list[Row]) -> None:
    rows = [(sentence, start, start + width, label, score) for sentence, start, width, label, score in drawn]
    remaining = run(rows, decay=1.0)
    by_sentence = defaultdict(list)
    for row in remaining:
        by_sentence[row[0]].append(Span(row[1], row[2]))
    expected = [row for row in remaining if not any(Span(row[1], row[2]).crosses(other) for other in by_sentence[row[0]])]
    assert run(rows, decay=1.0, drops_crossing=True) == expected


def test_decoding_after_soft_nms() -> None:
    rows = [(0, 0, 4, 0, 0.9), (0, 0, 5, 1, 0.8), (0, 4, 6, 0, 0.7), (2, 0, 1, 1, 0.6), (2, 3, 4, 1, 0.1)]
    columns = [np.array([row[n] for row in rows], np.int64) for n in range(4)]
    for policy, count in (("overlapping", 3), ("nested", 2), ("flat", 2)):
        result = decode(
            *columns, np.array([row[4] for row in rows], np.float32), count=3, types=("A", "B"),
            policy=SoftNms(0.9, 0.7, 0.45, policy),
        )  # fmt: skip
        assert [len(entities) for entities in result] == [count, 0, 1]
        assert Counter(e.score for e in result[0])[0.9] == 1
    unfiltered = decode(*columns, np.ones(5, np.float32), count=3, types=("A", "B"), policy="overlapping")
    assert [len(entities) for entities in unfiltered] == [3, 0, 2]


def test_nothing_to_suppress() -> None:
    assert run([]) == []
    assert run([(0, 0, 1, 0, 0.0)], threshold=0.0) == []


def test_spans_below_min_scores_suppress_nothing() -> None:
    spans = [np.array(column) for column in ([0, 0], [0, 0], [2, 3], [0, 1])]
    policy = SoftNms(decay=0.7, overlap=0.5, threshold=0.45)

    def scores_by_type(min_scores: dict[str, float] | None) -> dict[str, float | None]:
        score = np.array([0.8, 0.6], np.float32)
        (entities,) = decode(*spans, score, count=1, types=("A", "B"), policy=policy, min_scores=min_scores)
        return {entity.type: entity.score for entity in entities}

    assert scores_by_type(None) == {"A": pytest.approx(0.8)}  # the score of B becomes 0.42
    assert scores_by_type({"A": 0.9, "B": 0.45}) == {"B": pytest.approx(0.6)}
    assert scores_by_type({"A": 0.5, "B": 0.45}) == {"A": pytest.approx(0.8)}
