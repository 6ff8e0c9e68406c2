"""Sentences from raw text."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanwise import FormatError
from spanwise.core.types import Sentence
from spanwise.text import split_sentences, split_words
from spanwise.text.reading import sentences_from_stream, sentences_from_text

TEXT = "Oslo rained. Lima did not.\r\n\n   \nнет 北京 🌊 wave.\nlast line"


def test_sentences_have_the_right_offsets() -> None:
    sentences = list(sentences_from_stream(io.BytesIO(TEXT.encode()), "d", "file"))
    assert [" ".join(sentence.words) for sentence in sentences] == [
        "Oslo rained .", "Lima did not .", "нет 北 京 🌊 wave .", "last line",
    ]  # fmt: skip
    for index, sentence in enumerate(sentences):
        assert sentence.start is not None
        assert TEXT[sentence.start :].startswith(sentence.text)
        assert (sentence.id, sentence.document, sentence.position) == (f"d-{index}", "d", index)


def test_a_text_and_a_stream_give_the_same_sentences() -> None:
    whole = [sentence for sentence in sentences_from_text(TEXT, "d") if sentence.words]
    by_line = list(sentences_from_stream(io.BytesIO(TEXT.encode()), "d", "file"))
    assert whole == by_line
    assert "".join(sentence.text for sentence in by_line) == TEXT
    for text in ("\n \n  Oslo.\n\n", " one\r\n\r\ntwo. Three\n\n\n"):
        sentences = list(sentences_from_stream(io.BytesIO(text.encode()), "d", "file"))
        assert "".join(sentence.text for sentence in sentences) == text
        assert sentences == list(sentences_from_text(text, "d"))


def test_the_first_sentence_is_available_before_the_stream_ends() -> None:
    class Slow(io.RawIOBase):
        def __iter__(self) -> Iterator[bytes]:  # type: ignore[override]
            yield b"Oslo rained.\n"
            yield b"Lima did not.\n"
            raise AssertionError("read more than needed")

    assert next(sentences_from_stream(Slow(), "d", "file")).words == ("Oslo", "rained", ".")  # type: ignore[arg-type]


def test_invalid_bytes_are_reported_with_their_line() -> None:
    with pytest.raises(FormatError, match="file:2: not UTF-8 at byte 3"):
        list(sentences_from_stream(io.BytesIO(b"fine\nno\xff\n"), "d", "file"))


def test_a_byte_order_mark_is_removed() -> None:
    assert list(sentences_from_stream(io.BytesIO(b"\xef\xbb\xbf" + TEXT.encode()), "d", "file")) == list(
        sentences_from_text(TEXT, "d")
    )


def test_empty_text_has_no_sentences() -> None:
    for raw in (b"", b"\n\n \n", b"\xef\xbb\xbf"):
        assert list(sentences_from_stream(io.BytesIO(raw), "d", "file")) == []


@given(st.text("aI1é北.!?\"')\x1c \n_-\u0301", max_size=20))
def test_sentences_are_as_if_their_words_were_checked(text: str) -> None:
    """Sentences of a text skip the checks of ``Sentence``, and ASCII text has its own patterns."""
    expected = []
    for index, (first, last) in enumerate(split_sentences(text)):
        spans = split_words(text[first:last])
        words, starts = tuple(text[first + a : first + b] for a, b in spans), tuple(a for a, _ in spans)
        part = Sentence(f"d-{index}", words, text=text[first:last], starts=starts, document="d", position=index, start=first)
        expected.append(part)
    assert list(sentences_from_text(text, "d")) == expected


@given(st.text("aI1.!?\"')\x1c \t_-", max_size=20))
def test_ascii_text_is_split_like_other_text(text: str) -> None:
    """A character of another alphabet at the end selects the general patterns."""
    with_letter = text + " é"
    assert [text[a:b] for a, b in split_words(text)] == [with_letter[a:b] for a, b in split_words(with_letter)][:-1]
    cuts = [end for _, end in split_sentences(text + " e")]
    assert cuts == [end for _, end in split_sentences(with_letter)]
