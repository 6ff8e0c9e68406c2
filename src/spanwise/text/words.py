"""Rule-based word splitting: runs of letters and digits, single marks, single Chinese or Japanese characters."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from spanwise.core.types import Span

# Scripts written without spaces: Han with its extensions, kana. Each character is a word, as in all Chinese corpora.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+|[^\w\s]")
_ASCII_WORD = re.compile(r"\w+|[^\w\s]")  # the same on ASCII text, without the lookahead at each letter
_LETTER = re.compile(rf"(?![{_UNSPACED}])\w")
_JOINERS = "\u200c\u200d"


def split_words(text: str) -> list[Span]:
    """Return the words of a text as character spans.

    >>> text = "Anti-IL2 in 北京."
    >>> [text[a:b] for a, b in split_words(text)]
    ['Anti', '-', 'IL2', 'in', '北', '京', '.']
    """
    if text.isascii():  # it has no marks, and this is twice as fast
        return [Span(*match.span()) for match in _ASCII_WORD.finditer(text)]
    words: list[Span] = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        # To `re`, vowel signs of Indic scripts, accents and joiners are not letters, but they are part of a word.
        is_adjacent = bool(words) and words[-1].end == start
        if is_adjacent and (_is_mark(text[start]) or (_is_mark(text[start - 1]) and _LETTER.match(text, start))):
            words[-1] = Span(words[-1].start, end)
        else:
            words.append(Span(start, end))
    return words


def words_with_starts(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the words of a text and their first characters: ``split_words`` without an object for each word.

    >>> words_with_starts("Anti-IL2 fell.")
    (('Anti', '-', 'IL2', 'fell', '.'), (0, 4, 5, 9, 13))
    """
    if text.isascii():
        return tuple(_ASCII_WORD.findall(text)), tuple([match.start() for match in _ASCII_WORD.finditer(text)])
    spans = split_words(text)
    return tuple([text[start:end] for start, end in spans]), tuple([start for start, _ in spans])


def _is_mark(character: str) -> bool:
    return character > "\u02ff" and (unicodedata.category(character)[0] == "M" or character in _JOINERS)


def cut_words(words: Iterable[Span], cuts: Iterable[int]) -> list[Span]:
    """Split each word at the offsets in ``cuts`` that are inside it.

    >>> cut_words([Span(0, 4), Span(5, 6)], [3, 5])
    [Span(start=0, end=3), Span(start=3, end=4), Span(start=5, end=6)]
    """
    offsets = sorted(set(cuts))
    pieces: list[Span] = []
    for word in words:
        inside = offsets[bisect_right(offsets, word.start) : bisect_left(offsets, word.end)]
        if inside:
            pieces += [Span(a, b) for a, b in zip([word.start, *inside], [*inside, word.end], strict=True)]
        else:
            pieces.append(word)
    return pieces
