"""Sentences of raw text, by rule: full stops, line ends, and never a cut inside what must stay together."""

from __future__ import annotations

import re
from collections.abc import Iterable

from spanwise.core.types import Span

_CLOSERS = "\"'’”»)\\]』」）】"
# 1: an ender before white space (the white space goes to the sentence it ends); 2: a Chinese ender; 3: a line end.
# Each run of marks or white space is looked at from its first character only, so that long ones cost no more than short ones.
_END = re.compile(rf"((?<![.!?…])[.!?…]+[{_CLOSERS}]*)\s+|[。！？｡]+[{_CLOSERS}]*\s*|(?<!\s)\s*\n\s*")
_ABBREVIATIONS = frozenset(
    "al approx art ave bros ca capt cf ch co col corp dept dr ed eds eq esq est fig figs gen gov inc jan feb mar apr jun"
    " jul aug sep sept oct nov dec jr lt ltd maj messrs mr mrs ms mt mts no nos op pp pres prof rep rev sec sen sgt sp spp"
    " sr st subsp supp vol vols vs resp dra bzw usw nr str г гг ул им т тыс млн млрд руб см стр д".split()
)
_LAST_WORD = re.compile(r"[^\W\d_]+$")


def split_sentences(text: str, keep: Iterable[Span] = ()) -> list[Span]:
    """The sentences of a text as character ranges that cover all of it; white space belongs to the sentence before it.

    No cut falls inside one of the ranges in ``keep``, so an entity stays in one sentence.

    >>> text = "Dr. Wu left. He took IL-2.\\nFine"
    >>> [text[a:b] for a, b in split_sentences(text)]
    ['Dr. Wu left. ', 'He took IL-2.\\n', 'Fine']
    >>> split_sentences("Yahoo! Inc. grew", keep=[Span(0, 11)])
    [Span(start=0, end=16)]
    """
    if not text:
        return []
    together = _merged(keep)
    cuts: list[int] = []
    at = 0
    for match in _END.finditer(text):
        cut = match.end()
        if match.start() == 0 and not match.group().strip():
            continue  # white space before the first word
        while at < len(together) and together[at].end <= cut:
            at += 1
        if cut >= len(text) or (at < len(together) and together[at].start < cut):
            continue
        if match.group(1) and "\n" not in match.group() and not _ends_sentence(text, match):
            continue
        cuts.append(cut)
    return [Span(a, b) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """True when the mark before a blank really ends a sentence: what follows may begin one, what precedes may end one."""
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


def _merged(ranges: Iterable[Span]) -> list[Span]:
    """Overlapping ranges joined, in order."""
    merged: list[Span] = []
    for span in sorted(ranges):
        if merged and span.start < merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(Span(*span))
    return merged
