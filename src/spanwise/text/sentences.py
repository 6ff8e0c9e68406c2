"""Rule-based sentence splitting."""

from __future__ import annotations

import re
from collections.abc import Iterable

from spanwise.core.types import Span

_CLOSERS = "\"'’”»)\\]』」）】"
_MARKS = ".!?…।॥؟۔។៕။"  # also of Devanagari, Arabic, Urdu, Khmer and Burmese
# 1: an end mark before white space, which belongs to the sentence it ends; 2: a Chinese end mark; 3: a line end.
# A run of marks or white space can only match from its first character, so long runs cost linear time.
_END = re.compile(rf"((?<![{_MARKS}])[{_MARKS}]+[{_CLOSERS}]*)\s+|[。！？｡]+[{_CLOSERS}]*\s*|(?<!\s)\s*\n\s*")
# The same on ASCII text of one line. Marks are rare, so a pattern that starts with one is found several times as fast.
_ASCII_END = re.compile(rf"([.!?](?<![.!?][.!?])[.!?]*[{_CLOSERS}]*)\s+")
_ABBREVIATIONS = frozenset(
    "al approx art ave bros ca capt cf ch co col corp dept dr ed eds eq esq est fig figs gen gov inc jan feb mar apr jun"
    " jul aug sep sept oct nov dec jr lt ltd maj messrs mr mrs ms mt mts no nos op pp pres prof rep rev sec sen sgt sp spp"
    " sr st subsp supp vol vols vs resp dra bzw usw nr str г гг ул им т тыс млн млрд руб см стр д".split()
)
_LAST_WORD = re.compile(r"[^\W\d_]+$")


def split_sentences(text: str, keep_together: Iterable[Span] = ()) -> list[Span]:
    """Return the sentences of a text as character spans that cover all of it.

    White space belongs to the sentence before it. No span in ``keep_together`` is split, so an entity
    stays in one sentence.
    >>> text = "Dr. Wu left. He took IL-2.\\nFine"
    >>> [text[a:b] for a, b in split_sentences(text)]
    ['Dr. Wu left. ', 'He took IL-2.\\n', 'Fine']
    >>> split_sentences("Yahoo! Inc. grew", keep_together=[Span(0, 11)])
    [Span(start=0, end=16)]
    """
    if not text:
        return []
    unbroken = _merge_overlapping(keep_together)
    cuts: list[int] = []
    index = 0  # of the first unbroken span that ends after the cut
    pattern = _ASCII_END if "\n" not in text and text.isascii() else _END
    for match in pattern.finditer(text):
        cut = match.end()
        if match.start() == 0 and not match.group().strip():
            continue  # white space before the first word
        while index < len(unbroken) and unbroken[index].end <= cut:
            index += 1
        if cut >= len(text) or (index < len(unbroken) and unbroken[index].start < cut):
            continue
        if match.group(1) and "\n" not in match.group() and not _ends_sentence(text, match):
            continue
        cuts.append(cut)
    return [Span(a, b) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """Return True if the mark ends a sentence, judged by the next character and the word before it."""
    following = text[match.end()]
    if following.islower() or following in ",;:)]}%":
        return False
    if match.group(1) != ".":
        return True
    word = _LAST_WORD.search(text, max(0, match.start() - 20), match.start())
    if not word:
        return True
    before = word.group()
    is_initial = len(before) == 1 and before.isupper() and before not in "I"
    is_dotted = word.start() > 0 and text[word.start() - 1] == "." and len(before) <= 2  # e.g., U.S., т.д.
    return not (is_initial or is_dotted or before.lower() in _ABBREVIATIONS)


def _merge_overlapping(spans: Iterable[Span]) -> list[Span]:
    """Join overlapping spans and sort the result."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(Span(*span))
    return merged
