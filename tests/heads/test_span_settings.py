"""Settings of span heads that follow from the training entities, compared with slow references."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spanwise.core.types import Entity, Sentence, Span
from spanwise.heads.span_settings import SpanSettings, count_without_crossing, has_crossing

spans = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 6)).map(lambda pair: Span(pair[0], sum(pair))), max_size=8)


@given(spans)
def test_crossing_spans_are_detected(group: list[Span]) -> None:
    crosses = any(one.crosses(other) for one, other in combinations(group, 2))
    assert has_crossing(group) == crosses


@given(spans)
@example([Span(3, 8), Span(4, 9), Span(4, 6), Span(7, 9), Span(3, 5)])  # removing the worst span first leaves only two
@example([Span(0, 3), Span(0, 3), Span(2, 5), Span(2, 5), Span(2, 5)])
def test_the_largest_set_without_crossing_spans(group: list[Span]) -> None:
    places = range(len(group))  # a span may occur several times: then it is an entity of several types
    sizes = (n for n in range(len(group), 0, -1) for c in combinations(places, n) if not has_crossing(group[p] for p in c))
    assert count_without_crossing(group) == next(sizes, 0)


def test_many_crossing_spans_of_a_long_text_are_counted_quickly() -> None:
    """In groups: all of them at once would take minutes."""
    pairs = [span for start in range(0, 3000, 6) for span in (Span(start, start + 3), Span(start + 2, start + 5))]
    inner = [Span(start, start + 1) for start in range(0, 3000, 6)]
    assert count_without_crossing([*pairs, *inner]) == 1000


@pytest.mark.parametrize(
    ("inner", "count", "decoding"),
    [
        (Span(0, 1), 2000, "flat"),  # one nested entity is probably an annotation error
        (Span(0, 1), 20, "nested"),
        (Span(1, 3), 2000, "flat"),
        (Span(1, 3), 20, "overlapping"),
    ],
)
def test_a_few_overlaps_in_a_large_corpus_do_not_decide(inner: Span, count: int, decoding: str) -> None:
    words = ("a", "b", "c")
    sentences = [Sentence(str(number), words, (Entity("X", ((0, 2),)),)) for number in range(count)]
    sentences.append(Sentence("overlap", words, (Entity("X", ((0, 2),)), Entity("X", (inner,)))))
    assert SpanSettings().resolve(sentences).decoding == decoding
