"""Decoding of scored spans."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise import Entity, Span, SpanwiseError
from spanwise.decoding import decode as decode_module
from spanwise.decoding.decode import decode, drop_conflicts, text_order
from spanwise.decoding.soft_nms import SoftNms


def decoded(rows: list[tuple[int, int, int, int, float]], count: int, policy: str = "overlapping") -> list[tuple[Entity, ...]]:
    columns = [np.array([row[n] for row in rows], np.int64) for n in range(4)]
    return decode(*columns, np.array([row[4] for row in rows], np.float32), count=count, types=("A", "B"), policy=policy)


def test_no_spans() -> None:
    assert decoded([], 3) == decoded([], 3, "flat") == [(), (), ()]
    assert decoded([], 0) == []


@pytest.mark.parametrize(
    "options", [{}, {"min_scores": {"A": 0.5}}, {"policy": SoftNms(decay=0.9, overlap=0.7, threshold=0.4)}]
)
def test_scores_that_are_not_numbers_are_refused(options: dict[str, Any]) -> None:
    columns = [np.array([value]) for value in (0, 0, 1, 0)]
    with pytest.raises(SpanwiseError, match="not a finite number"):
        decode(*columns, np.array([np.nan], np.float32), count=1, types=("A",), **options)


def test_entities_are_in_text_order() -> None:
    by_sentence = decoded([(2, 4, 5, 0, 0.5), (0, 3, 4, 1, 0.25), (0, 0, 4, 0, 0.75), (0, 0, 2, 0, 0.5), (0, 0, 2, 1, 0.5)], 3)
    assert [[(e.type, *e.range) for e in entities] for entities in by_sentence] == [
        [("A", 0, 4), ("A", 0, 2), ("B", 0, 2), ("B", 3, 4)], [], [("A", 4, 5)],
    ]  # fmt: skip
    assert [e.score for e in by_sentence[0]] == [0.75, 0.5, 0.5, 0.25]


def test_flat_accepts_the_most_probable_first() -> None:
    spans = [(0, 0, 3, 0, 0.6), (0, 2, 5, 0, 0.9), (0, 4, 6, 0, 0.8), (0, 5, 6, 1, 0.2)]
    for rows in (spans, spans[::-1]):
        assert [(*e.range, e.type) for e in decoded(rows, 1, "flat")[0]] == [(2, 5, "A"), (5, 6, "B")]
        assert len(decoded(rows, 1)[0]) == 4


def test_nested_drops_crossing_spans_only() -> None:
    spans = [(0, 0, 3, 0, 0.6), (0, 2, 5, 0, 0.9), (0, 3, 5, 1, 0.8), (0, 4, 6, 0, 0.7), (0, 2, 5, 1, 0.3), (0, 0, 6, 0, 0.1)]
    for rows in (spans, spans[::-1]):
        assert [(*e.range, e.type) for e in decoded(rows, 1, "nested")[0]] == [
            (0, 6, "A"), (2, 5, "A"), (2, 5, "B"), (3, 5, "B"),
        ]  # fmt: skip


@pytest.mark.parametrize("policy", ["flat", "nested", SoftNms(decay=0.5, overlap=0.1, threshold=0.6, policy="overlapping")])
def test_log_odds_decide_between_equal_scores(policy: str | SoftNms) -> None:
    spans = [np.array(column) for column in ([0, 0, 0], [0, 1, 2], [2, 3, 4], [0, 0, 0])]
    scores, log_odds = np.array([1, 1, 1], np.float32), np.array([30, 40, 18], np.float32)
    (first,) = decode(*spans, scores, count=1, types=("A",), policy=policy)
    assert [tuple(entity.range) for entity in first] == [(0, 2), (2, 4)]
    (best,) = decode(*spans, scores, count=1, types=("A",), policy=policy, log_odds=log_odds)
    assert [tuple(entity.range) for entity in best] == [(1, 3)]
    (best,) = decode(*spans, np.array([1, 0.9, 1], np.float32), count=1, types=("A",), policy="flat", log_odds=log_odds)
    assert [tuple(entity.range) for entity in best] == [(0, 2), (2, 4)]


def test_sentences_are_independent() -> None:
    assert [len(entities) for entities in decoded([(0, 0, 3, 0, 0.6), (1, 0, 3, 0, 0.9)], 2, "flat")] == [1, 1]


def test_adjacent_spans_do_not_overlap() -> None:
    assert len(decoded([(0, 0, 2, 0, 0.6), (0, 2, 3, 0, 0.9)], 1, "flat")[0]) == 2


rows = st.lists(
    st.tuples(st.just(0), st.integers(0, 8), st.integers(1, 4), st.integers(0, 1), st.sampled_from([0.25, 0.5, 0.75, 1.0])),
    max_size=12,
)


@given(rows, st.randoms())
def test_flat_does_not_depend_on_input_order(drawn: list[tuple[int, int, int, int, float]], choose: object) -> None:
    spans = [(sentence, start, start + width, label, score) for sentence, start, width, label, score in drawn]
    (flat,) = decoded(spans, 1, "flat")
    (candidates,) = decoded(spans, 1)
    for index, entity in enumerate(flat):
        assert not any(entity.range.overlaps(other.range) for other in flat[index + 1 :])
    for entity in candidates:
        rivals = [other for other in flat if other.range.overlaps(entity.range)]
        assert rivals
        assert max(other.score or 0 for other in rivals) >= (entity.score or 0)
    shuffled = list(spans)
    choose.shuffle(shuffled)  # type: ignore[attr-defined]
    assert decoded(shuffled, 1, "flat")[0] == flat


@given(rows, st.sampled_from(["nested", "flat"]))
def test_decode_equals_pairwise_comparison(drawn: list[tuple[int, int, int, int, float]], policy: str) -> None:
    spans = [(sentence, start, start + width, label, score) for sentence, start, width, label, score in drawn]
    expected = drop_conflicts(decoded(spans, 1)[0], {"nested": Span.crosses, "flat": Span.overlaps}[policy])
    assert sorted(decoded(spans, 1, policy)[0], key=text_order) == sorted(expected, key=text_order)


def test_missing_scores() -> None:
    drawn = [Entity("A", ((0, 2),)), Entity("B", ((1, 3),), score=0.1)]
    assert drop_conflicts(drawn, Span.overlaps) == [Entity("B", ((1, 3),))]
    assert decoded([(0, 0, 1, 0, 1 / 3)], 1)[0][0].score == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize("policy", ["nested", "flat"])
@pytest.mark.parametrize("compared", [1, 3, 64])
def test_sentences_with_many_spans_and_few_conflicts(policy: str, compared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only sentences with conflicts are examined; above a number of spans, all that overlap."""
    monkeypatch.setattr(decode_module, "MAX_COMPARED", compared)
    generator = np.random.default_rng(compared)
    for _ in range(40):
        start = generator.integers(0, 12, 24)
        spans = zip(generator.integers(0, 5, 24), start, start + generator.integers(1, 5, 24), generator.integers(0, 2, 24),
                    generator.permutation(24) / 32, strict=True)  # fmt: skip
        by_sentence = decoded([(int(n), int(a), int(b), int(label), float(score)) for n, a, b, label, score in spans], 5)
        rows = [(n, *e.range, "AB".index(e.type), e.score or 0.0) for n, entities in enumerate(by_sentence) for e in entities]
        for entities, candidates in zip(decoded(rows, 5, policy), by_sentence, strict=True):
            expected = drop_conflicts(candidates, {"nested": Span.crosses, "flat": Span.overlaps}[policy])
            assert sorted(entities, key=text_order) == sorted(expected, key=text_order)


@pytest.mark.parametrize("span", [(2, 2), (3, 2), (-1, 2)])
def test_spans_that_are_no_ranges_are_refused(span: tuple[int, int]) -> None:
    with pytest.raises(SpanwiseError, match="not a range of words"):
        decoded([(0, *span, 0, 0.5)], 1)


def test_decoded_entities_equal_checked_ones() -> None:
    (entity,) = decoded([(0, 1, 3, 1, 0.5)], 1)[0]
    checked = Entity("B", (Span(1, 3),), score=0.5)
    assert entity == checked
    assert (hash(entity), repr(entity), entity.score, entity.extra) == (hash(checked), repr(checked), 0.5, None)
    assert pickle.loads(pickle.dumps(entity)) == replace(entity, score=0.1) == checked
