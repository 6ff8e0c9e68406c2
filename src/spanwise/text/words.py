"""Rule-based word splitting: runs of letters and digits, single marks, single characters of scripts without spaces."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from spanwise.core.types import Span

# Written without spaces: Han with its extensions, kana. Each character is a word, as in all Chinese corpora.
_CHINESE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Letters of Thai, Lao, Khmer and Burmese, without digits. Their words cannot be found by rules, so a consonant with
# its vowels and accents is a word; a border of an entity is never inside one.
_SOUTHEAST = "\u0e01-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1780-\u17d3\u17d7\u17dc\u1000-\u103f\u1050-\u108f\u109a-\u109f"
_CLUSTER = (
    "[\u0e40-\u0e44]?[\u0e01-\u0e2e][\u0e30-\u0e3a\u0e45\u0e47-\u0e4e]*"  # Thai; some vowels are before their consonant
    "|[\u0ec0-\u0ec4]?[\u0e81-\u0eae\u0edc-\u0edf][\u0eb0-\u0ebd\u0ec8-\u0ece]*"  # Lao
    "|[\u1780-\u17b3](?:\u17d2[\u1780-\u17b3]|[\u17b4-\u17d1\u17d3])*"  # Khmer, with subscript consonants
    "|[\u1000-\u102a](?:\u1039[\u1000-\u102a]|[\u102b-\u1038\u103a-\u103e]|[\u1000-\u1021]\u1037?\u103a)*"  # Burmese
)
_UNSPACED = _CHINESE + _SOUTHEAST
_WORD = re.compile(rf"[{_CHINESE}]|{_CLUSTER}|[{_SOUTHEAST}]|(?:(?![{_UNSPACED}])\w)+|[^\w\s]")
_ASCII_WORD = re.compile(r"\w+|[^\w\s]")  # the same on ASCII text, without the lookahead at each letter
_INNER_LETTER = re.compile(rf"(?<![{_UNSPACED}])(?![{_UNSPACED}])\w")  # after a mark
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
        if is_adjacent and (_is_mark(text[start]) or (_is_mark(text[start - 1]) and _INNER_LETTER.match(text, start))):
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
