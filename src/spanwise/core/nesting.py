"""Nested spans, and levels of spans that do not overlap."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate

from spanwise.core.types import Span


def nested_spans(spans: Iterable[Span]) -> set[Span]:
    """Return the spans that are inside another, different span.

    >>> nested_spans([Span(0, 3), Span(1, 2), Span(2, 5), Span(2, 5)])
    {Span(start=1, end=2)}
    """
    nested: set[Span] = set()
    furthest_end = -1
    # In this order a span comes after every span that contains it.
    for span in sorted(set(spans), key=lambda span: (span.start, -span.end)):
        if span.end <= furthest_end:
            nested.add(span)
        furthest_end = max(furthest_end, span.end)
    return nested


class NestingIndex:
    """Spans among which one that contains a given span, or is inside it, is searched in O(log n).

    Equal spans do not contain each other.

    >>> index = NestingIndex([Span(0, 5), Span(1, 2)])
    >>> [(index.has_outside(span), index.has_inside(span)) for span in (Span(1, 2), Span(0, 3), Span(0, 5), Span(4, 6))]
    [(True, False), (True, True), (False, True), (False, False)]
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        # In this order a span comes after every span that contains it.
        self._keys = sorted({(span.start, -span.end) for span in spans})
        ends = [-end for _, end in self._keys]
        self._furthest_ends = list(accumulate(ends, max))  # of the spans up to each of them
        self._nearest_ends = list(accumulate(reversed(ends), min))[::-1]  # of the spans from each of them

    def has_outside(self, span: Span) -> bool:
        """Whether another span contains this one."""
        before = bisect_left(self._keys, (span.start, -span.end))
        return before > 0 and self._furthest_ends[before - 1] >= span.end

    def has_inside(self, span: Span) -> bool:
        """Whether another span is inside this one."""
        after = bisect_right(self._keys, (span.start, -span.end))
        return after < len(self._keys) and self._nearest_ends[after] <= span.end


def assign_levels(spans: Iterable[Span], max_levels: int | None = None) -> list[int]:
    """Give each span the lowest level on which no earlier span overlaps it.

    A span that fits none of the first ``max_levels`` levels gets the level ``max_levels``. Spans
    must not be empty.

    >>> assign_levels([Span(1, 2), Span(0, 3), Span(4, 5)])
    [0, 1, 0]
    """
    ordered = list(spans)
    indices = {boundary: index for index, boundary in enumerate(sorted({boundary for span in ordered for boundary in span}))}
    occupied = _OccupiedLevels(len(indices))
    levels: list[int] = []
    for span in ordered:
        start, end = indices[span.start], indices[span.end]
        used = occupied.between(start, end)
        level = (~used & (used + 1)).bit_length() - 1  # the lowest bit that is not set
        if max_levels is None or level < max_levels:
            occupied.add(start, end, level)
            levels.append(level)
        else:
            levels.append(max_levels)
    return levels


class _OccupiedLevels:
    """The levels in use at each position, as bit masks in a segment tree: O(log n) per operation.

    ``whole`` holds the levels that cover all positions of a node, ``some`` those that cover at least
    one of them. Every node that is only partly inside a range is an ancestor of its first or last leaf.
    """

    def __init__(self, size: int) -> None:
        self.leaves = 1 << max(0, size - 1).bit_length()
        self.whole, self.some = ([0] * (2 * self.leaves) for _ in range(2))

    def add(self, start: int, end: int, level: int) -> None:
        bit = 1 << level
        for node in self._cover(start, end):
            self.whole[node] |= bit
            self.some[node] |= bit
        for node in self._ancestors(start, end):
            self.some[node] |= bit

    def between(self, start: int, end: int) -> int:
        """Return the mask of the levels in use anywhere in a range."""
        mask = 0
        for node in self._cover(start, end):
            mask |= self.some[node]
        for node in self._ancestors(start, end):
            mask |= self.whole[node]
        return mask

    def _cover(self, start: int, end: int) -> Iterable[int]:
        """Yield the largest nodes that together are exactly the range."""
        left, right = start + self.leaves, end + self.leaves
        while left < right:
            if left & 1:
                yield left
                left += 1
            if right & 1:
                right -= 1
                yield right
            left, right = left >> 1, right >> 1

    def _ancestors(self, start: int, end: int) -> Iterable[int]:
        for leaf in (start, end - 1):
            node = leaf + self.leaves
            while node:
                yield node
                node >>= 1
