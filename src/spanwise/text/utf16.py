"""Offsets in UTF-16 units, as browsers count them: characters above U+FFFF (emoji, rare Han) take two."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from spanwise.core.types import Span


class Utf16:
    """Converts character spans of a text to spans of UTF-16 units and back.

    >>> units = Utf16("🌊 Oslo")
    >>> units.to_characters(Span(3, 7)), units.from_characters(Span(2, 6))
    (Span(start=2, end=6), Span(start=3, end=7))
    """

    def __init__(self, text: str) -> None:
        self._offsets = list(accumulate((1 + (character > "\uffff") for character in text), initial=0))

    def to_characters(self, units: Span) -> Span:
        """Return the characters of a span of units; an offset outside the text stays outside."""
        start, end = (unit if unit < 0 else bisect_left(self._offsets, unit) for unit in units)
        return Span(start, end)

    def from_characters(self, characters: Span) -> Span:
        return Span(self._offsets[characters.start], self._offsets[characters.end])


def is_wide(text: str) -> bool:
    """Return True if the text has characters of two UTF-16 units.

    >>> is_wide("日本"), is_wide("🌊")
    (False, True)
    """
    return not text.isascii() and max(text) > "\uffff"
