"""Tokens as in spaCy, for DocBin and Prodigy: with their trailing spaces they cover the whole text."""

from __future__ import annotations

from typing import NamedTuple

from spanwise.core.types import Span


class Token(NamedTuple):
    """The character range of a token, and whether a space follows that is not part of any token."""

    start: int
    end: int
    has_space: bool = False


def cover_with_tokens(text: str, words: list[Span]) -> list[Token]:
    """Return the words as tokens, with additional tokens for text between them other than one space.

    >>> cover_with_tokens("Oslo  lies \\nthere", [Span(0, 4), Span(6, 10), Span(12, 17)])[1:3]
    [Token(start=5, end=6, has_space=False), Token(start=6, end=10, has_space=True)]
    """
    tokens: list[Token] = []
    last = 0
    for start, end in [*words, Span(len(text), len(text))]:
        if tokens and last < start and text[last] == " ":
            tokens[-1] = tokens[-1]._replace(has_space=True)
            last += 1
        tokens += [Token(a, b) for a, b in ((last, start), (start, end)) if a < b]
        last = end
    return tokens
