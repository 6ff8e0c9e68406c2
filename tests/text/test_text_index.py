"""Binary search for words in a text, compared with plain string methods."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spanwise import Span
from spanwise.text.text_index import TextIndex

TEXTS = st.text("ab  \n\u00a0\x1c", max_size=12)


@st.composite
def texts_with_ranges(draw: st.DrawFn) -> tuple[str, Span, Span]:
    text = draw(TEXTS)
    offsets = st.integers(0, len(text))
    start, middle, end = sorted((draw(offsets), draw(offsets), draw(offsets)))
    return text, Span(start, middle), Span(middle, end)


@given(texts_with_ranges())
def test_strip(example: tuple[str, Span, Span]) -> None:
    text, span, _ = example
    piece = text[span.start : span.end]
    start = span.start + len(piece) - len(piece.lstrip())
    expected = Span(start, start + len(piece.strip())) if piece.strip() else None
    assert TextIndex(text).strip(*span) == expected


@given(texts_with_ranges(), TEXTS, st.booleans())
def test_matches(example: tuple[str, Span, Span], other: str, is_same: bool) -> None:
    text, first, second = example
    words = [word for start, end in (first, second) for word in text[start:end].split()]
    expected = " ".join(words) if is_same else other
    assert TextIndex(text).matches([first, second], expected) == (words == expected.split())


def test_ranges_outside_the_text() -> None:
    index = TextIndex("a b")
    assert (index.strip(2, 2), index.strip(3, 9), index.strip(2, 9)) == (None, None, Span(2, 3))
    assert (index.matches([Span(5, 4)], ""), index.matches([Span(7, 9)], "b")) == (True, False)
