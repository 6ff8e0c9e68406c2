"""Nesting and levels of spans."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from spanwise import Span
from spanwise.core.nesting import NestingIndex, assign_levels, nested_spans

SPANS = st.lists(
    st.builds(lambda start, width: Span(start, start + width), st.integers(0, 30), st.integers(1, 12)), max_size=30
)


def levels_by_definition(spans: list[Span], max_levels: int) -> list[int]:
    """Try all levels, from the lowest up."""
    placed: list[list[Span]] = [[] for _ in range(max_levels)]
    levels = []
    for span in spans:
        free = (level for level, others in enumerate(placed) if not any(span.overlaps(other) for other in others))
        level = next(free, max_levels)
        if level < max_levels:
            placed[level].append(span)
        levels.append(level)
    return levels


@given(SPANS, st.integers(0, 4))
def test_each_span_gets_the_lowest_free_level(spans: list[Span], max_levels: int) -> None:
    assert assign_levels(spans) == levels_by_definition(spans, len(spans))
    assert assign_levels(spans, max_levels) == levels_by_definition(spans, max_levels)


@given(SPANS)
def test_nesting_of_each_span(spans: list[Span]) -> None:
    index = NestingIndex(spans[:20])
    for span in spans:
        others = [other for other in spans[:20] if other != span]
        assert index.has_outside(span) == any(other.contains(span) for other in others)
        assert index.has_inside(span) == any(span.contains(other) for other in others)
    assert nested_spans(spans) == {span for span in spans if NestingIndex(spans).has_outside(span)}


def test_ten_thousand_nested_spans_take_little_time() -> None:
    start = time.process_time()
    spans = [Span(index, 20_000 - index) for index in range(10_000)]
    assert assign_levels(spans) == list(range(10_000))
    assert assign_levels(reversed(spans)) == list(range(10_000))
    assert time.process_time() - start < 20
