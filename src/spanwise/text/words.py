"""Words of raw text: runs of letters and digits, single marks, and each Chinese or Japanese character by itself."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from spanwise.core.types import Span

# Scripts written without spaces: Han with its extensions, kana. Each character is a word, as in all Chinese corpora.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+|[^\w\s]")
_LETTER = re.compile(rf"(?![{_UNSPACED}])\w")
_JOINERS = "\u200c\u200d"


def split_words(text: str) -> list[Span]:
    """The words of a text as character ranges.

    >>> text = "Anti-IL2 in 北京."
    >>> [text[a:b] for a, b in split_words(text)]
    ['Anti', '-', 'IL2', 'in', '北', '京', '.']
    """
    words: list[Span] = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        # Vowel signs of Indic scripts, accents and joiners are no letters to `re`, yet part of the word they stand in.
        glued = bool(words) and words[-1].end == start
        if glued and (_is_mark(text[start]) or (_is_mark(text[start - 1]) and _LETTER.match(text, start))):
            words[-1] = Span(words[-1].start, end)
        else:
            words.append(Span(start, end))
    return words


def _is_mark(character: str) -> bool:
    return character > "\u02ff" and (unicodedata.category(character)[0] == "M" or character in _JOINERS)


def cut_words(words: Iterable[Span], cuts: Iterable[int]) -> list[Span]:
    """The words, each cut where one of ``cuts`` falls inside it.

    >>> cut_words([Span(0, 4), Span(5, 6)], [3, 5])
    [Span(start=0, end=3), Span(start=3, end=4), Span(start=5, end=6)]
    """
    places = sorted(set(cuts))
    pieces: list[Span] = []
    for word in words:
        inner = places[bisect_right(places, word.start) : bisect_left(places, word.end)]
        if inner:
            pieces += [Span(a, b) for a, b in zip([word.start, *inner], [*inner, word.end], strict=True)]
        else:
            pieces.append(word)
    return pieces
