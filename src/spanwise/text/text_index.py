"""Binary search for words in a text, independent of white space."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from spanwise.core.types import Span

_WORD = re.compile(r"\S+")


class TextIndex:
    """The words of a text (maximal runs without white space), found by binary search.

    >>> index = TextIndex("to New\\nYork ")
    >>> index.strip(2, 12), index.strip(2, 3), index.matches([Span(3, 11)], "New York")
    (Span(start=3, end=11), None, True)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        words = [word.span() for word in _WORD.finditer(text)]
        self._starts = [start for start, _ in words]
        self._ends = [end for _, end in words]

    def strip(self, start: int, end: int) -> Span | None:
        """Return these characters without leading and trailing white space; None if nothing remains."""
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end) - 1
        if start >= end or first > last:
            return None
        return Span(max(start, self._starts[first]), min(end, self._ends[last]))

    def matches(self, fragments: Iterable[Span], expected: str) -> bool:
        """Return True if these characters are the expected words. Stops at the first difference."""
        expected_words = (word.group() for word in _WORD.finditer(expected))
        return all(a == b for a, b in zip_longest(self._words(fragments), expected_words))

    def _words(self, fragments: Iterable[Span]) -> Iterator[str]:
        for start, end in fragments:
            index = bisect_right(self._ends, start) if start < end else len(self._ends)
            while index < len(self._starts) and self._starts[index] < end:
                yield self.text[max(start, self._starts[index]) : min(end, self._ends[index])]
                index += 1
