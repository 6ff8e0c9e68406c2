"""Tokens as spaCy has them, for DocBin and Prodigy: with the blanks behind them they spell the whole text."""

from __future__ import annotations

from typing import NamedTuple

from spanwise.core.types import Span


class Token(NamedTuple):
    """The characters of a token, and whether a blank that is no token follows."""

    start: int
    end: int
    space: bool = False


def covering(text: str, words: list[Span]) -> list[Token]:
    """The words as tokens, with what stands between them (other than one blank) as tokens too.

    >>> covering("Oslo  lies \\nthere", [Span(0, 4), Span(6, 10), Span(12, 17)])[1:4]
    [Token(start=5, end=6, space=False), Token(start=6, end=10, space=True), Token(start=11, end=12, space=False)]
    """
    tokens: list[Token] = []
    last = 0
    for start, end in [*words, Span(len(text), len(text))]:
        if tokens and last < start and text[last] == " ":
            tokens[-1] = tokens[-1]._replace(space=True)
            last += 1
        tokens += [Token(a, b) for a, b in ((last, start), (start, end)) if a < b]
        last = end
    return tokens
