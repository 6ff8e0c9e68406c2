"""The first character of each word of a text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate


def joined_starts(words: tuple[str, ...]) -> tuple[int, ...]:
    """Return the start of each word when words are joined by single spaces.

    >>> joined_starts(("a", "bc", "d"))
    (0, 2, 5)
    """
    return tuple(accumulate((len(word) + 1 for word in words[:-1]), initial=0))[: len(words)]


def find_words(words: Iterable[str], text: str) -> tuple[int, ...]:
    """Return the start of each word in the text, searching from left to right.

    >>> find_words(["can", "not", "."], "cannot.")
    (0, 3, 6)
    """
    starts, end = [], 0
    for index, word in enumerate(words):
        start = text.find(word, end)
        if start < 0:
            raise ValueError(f"word {index}, {word!r}, is not in the text after character {end}")
        starts.append(start)
        end = start + len(word)
    return tuple(starts)
