"""Search in texts in which every run of white space counts as one space."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

from spanwise.core.types import Span

_WORD = re.compile(r"\S+")


class CollapsedText:
    """A text with every run of white space collapsed to one space, for repeated searches.

    Results are character spans of the original text.

    >>> text = CollapsedText("Oslo, New  York\\nand New York")
    >>> text.find_first("New York", 2), text.find_nearest("New York", 15), text.contains("New", Span(0, 5))
    ([Span(start=6, end=15), Span(start=20, end=28)], Span(start=20, end=28), False)
    """

    def __init__(self, text: str) -> None:
        words = list(_WORD.finditer(text))
        self._text = " ".join(word.group() for word in words)
        self._starts = [word.start() for word in words]  # of the words in the original text
        self._collapsed_starts = list(accumulate((word.end() - word.start() + 1 for word in words[:-1]), initial=0))

    def find_first(self, query: str, max_count: int) -> list[Span]:
        """Return the first occurrences of the query, at most ``max_count``."""
        spans: list[Span] = []
        offset = self._text.find(query)
        while offset >= 0 and len(spans) < max_count:
            spans.append(self._span(offset, query))
            offset = self._text.find(query, offset + 1)
        return spans

    def find_nearest(self, query: str, start: int) -> Span | None:
        """Return the occurrence of the query that starts nearest to a character."""
        offset = self._collapse(start)
        before, after = self._text.rfind(query, 0, max(0, offset + len(query) - 1)), self._text.find(query, offset)
        spans = [self._span(offset, query) for offset in (before, after) if offset >= 0]
        return min(spans, key=lambda span: abs(span.start - start), default=None)

    def contains(self, query: str, span: Span) -> bool:
        """Return True if the query occurs in these characters."""
        return self._text.find(query, self._collapse(span.start), self._collapse(span.end)) >= 0

    def _collapse(self, character: int) -> int:
        """Return the offset of a character in the collapsed text; for white space, that of the next word."""
        index = bisect_right(self._starts, character) - 1
        if index < 0:
            return 0
        has_next = index + 1 < len(self._collapsed_starts)
        end = self._collapsed_starts[index + 1] if has_next else len(self._text)
        return min(self._collapsed_starts[index] + character - self._starts[index], end)

    def _span(self, offset: int, query: str) -> Span:
        return Span(self._character(offset), self._character(offset + len(query) - 1) + 1)

    def _character(self, offset: int) -> int:
        """Return the character of the original text at an offset of the collapsed text."""
        index = bisect_right(self._collapsed_starts, offset) - 1
        return self._starts[index] + offset - self._collapsed_starts[index]
