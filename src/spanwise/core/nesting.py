"""How ranges lie over each other."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from spanwise.core.types import Span


def inside_others(spans: Iterable[Span]) -> set[Span]:
    """The ranges that lie inside another, different one.

    >>> inside_others([Span(0, 3), Span(1, 2), Span(2, 5), Span(2, 5)])
    {Span(start=1, end=2)}
    """
    found: set[Span] = set()
    furthest = -1
    # What contains a range begins before it, or with it and ends later: sorted so, it comes before.
    for span in sorted(set(spans), key=lambda span: (span.start, -span.end)):
        if span.end <= furthest:
            found.add(span)
        furthest = max(furthest, span.end)
    return found


def levels(spans: Iterable[Span]) -> list[int]:
    """A level for each range: the first on which nothing that came before overlaps it.

    >>> levels([Span(1, 2), Span(0, 3), Span(4, 5)])
    [0, 1, 0]
    """
    placed: list[list[Span]] = []  # on each level, in the order of the text
    found: list[int] = []
    for span in spans:
        level = next((number for number, own in enumerate(placed) if _is_free(span, own)), len(placed))
        if level == len(placed):
            placed.append([])
        insort(placed[level], span)
        found.append(level)
    return found


def _is_free(span: Span, others: Sequence[Span]) -> bool:
    """Whether a range overlaps none of others in order, which do not overlap: only those beside it can be in the way."""
    place = bisect_left(others, span)
    return not any(span.overlaps(other) for other in others[max(0, place - 1) : place + 1])
