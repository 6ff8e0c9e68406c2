"""Places in a text as browsers count them: in UTF-16 units, of which characters beyond U+FFFF (emoji, rare Han) take two."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

from spanwise.core.types import Span


class Utf16:
    """Turns character ranges of a text into ranges of UTF-16 units and back.

    >>> units = Utf16("🌊 Oslo")
    >>> units.to_characters(Span(3, 7)), units.from_characters(Span(2, 6))
    (Span(start=2, end=6), Span(start=3, end=7))
    """

    def __init__(self, text: str) -> None:
        self._places = list(accumulate((1 + (character > "\uffff") for character in text), initial=0))

    def to_characters(self, units: Span) -> Span:
        """The characters of a range of units; what lies behind the text's end stays behind it."""
        return Span(bisect_left(self._places, units.start), bisect_left(self._places, units.end))

    def from_characters(self, characters: Span) -> Span:
        return Span(self._places[characters.start], self._places[characters.end])


def is_wide(text: str) -> bool:
    """True when characters and UTF-16 units count differently in this text.

    >>> is_wide("日本"), is_wide("🌊")
    (False, True)
    """
    return not text.isascii() and max(text) > "\uffff"
