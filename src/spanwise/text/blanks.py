"""Texts compared and searched as if every run of white space were one blank."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate, zip_longest

from spanwise.core.types import Span

_WORD = re.compile(r"\S+")


def says(text: str, fragments: Iterable[Span], said: str) -> bool:
    """True when a text has these words at these characters. A difference is seen early, however long the fragments are.

    >>> says("to New\\nYork", [Span(3, 11)], "New York"), says("to New\\nYork", [Span(3, 6)], "New York")
    (True, False)
    """
    found = (match.group() for start, end in fragments for match in _WORD.finditer(text, start, end))
    return all(a == b for a, b in zip_longest(found, (match.group() for match in _WORD.finditer(said))))


class Collapsed:
    """A text in which words are looked for, made once and searched as often as wanted.

    >>> text = Collapsed("Oslo, New  York\\nand New York")
    >>> text.first("New York", 2), text.nearest("New York", 15), text.has("New", Span(0, 5))
    ([Span(start=6, end=15), Span(start=20, end=28)], Span(start=20, end=28), False)
    """

    def __init__(self, text: str) -> None:
        words = list(_WORD.finditer(text))
        self._text = " ".join(word.group() for word in words)
        self._starts = [word.start() for word in words]
        self._places = list(accumulate((word.end() - word.start() + 1 for word in words[:-1]), initial=0))

    def first(self, said: str, most: int) -> list[Span]:
        """The first places of what is said, ``most`` at the most."""
        found: list[Span] = []
        place = self._text.find(said)
        while place >= 0 and len(found) < most:
            found.append(self._span(place, said))
            place = self._text.find(said, place + 1)
        return found

    def nearest(self, said: str, start: int) -> Span | None:
        """Of the places of what is said, the one that begins nearest to a character."""
        place = self._place(start)
        before, after = self._text.rfind(said, 0, max(0, place + len(said) - 1)), self._text.find(said, place)
        found = [self._span(place, said) for place in (before, after) if place >= 0]
        return min(found, key=lambda span: abs(span.start - start), default=None)

    def has(self, said: str, span: Span) -> bool:
        """True when it is said somewhere in these characters."""
        return self._text.find(said, self._place(span.start), self._place(span.end)) >= 0

    def _place(self, character: int) -> int:
        """The place of a character in the collapsed text; of white space, that of the next word."""
        number = bisect_right(self._starts, character) - 1
        if number < 0:
            return 0
        end = self._places[number + 1] if number + 1 < len(self._places) else len(self._text)
        return min(self._places[number] + character - self._starts[number], end)

    def _span(self, place: int, said: str) -> Span:
        start, last = (self._character(at) for at in (place, place + len(said) - 1))
        return Span(start, last + 1)

    def _character(self, place: int) -> int:
        number = bisect_right(self._places, place) - 1
        return self._starts[number] + place - self._places[number]
