"""Raw text, line by line."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from spanwise import FormatError
from spanwise.text.reading import raw_sentences, text_sentences

TEXT = "Oslo rained. Lima did not.\r\n\n   \nнет 北京 🌊 wave.\nlast line"


def test_sentences_stand_where_the_text_says() -> None:
    found = list(raw_sentences(io.BytesIO(TEXT.encode()), "d", "file"))
    assert [" ".join(sentence.words) for sentence in found] == [
        "Oslo rained .", "Lima did not .", "нет 北 京 🌊 wave .", "last line",
    ]  # fmt: skip
    for number, sentence in enumerate(found):
        assert sentence.start is not None
        assert TEXT[sentence.start :].startswith(sentence.text)
        assert (sentence.id, sentence.document, sentence.position) == (f"d-{number}", "d", number)


def test_a_text_at_once_has_the_same_places() -> None:
    at_once = [sentence for sentence in text_sentences(TEXT, "d") if sentence.words]
    by_line = list(raw_sentences(io.BytesIO(TEXT.encode()), "d", "file"))
    assert at_once == by_line
    assert "".join(sentence.text for sentence in by_line) == TEXT
    for text in ("\n \n  Oslo.\n\n", " one\r\n\r\ntwo. Three\n\n\n"):
        again = list(raw_sentences(io.BytesIO(text.encode()), "d", "file"))
        assert "".join(sentence.text for sentence in again) == text
        assert again == list(text_sentences(text, "d"))


def test_the_first_sentence_comes_before_the_stream_ends() -> None:
    class Slow(io.RawIOBase):
        def __iter__(self) -> Iterator[bytes]:  # type: ignore[override]
            yield b"Oslo rained.\n"
            yield b"Lima did not.\n"
            raise AssertionError("nobody asked for more")

    assert next(raw_sentences(Slow(), "d", "file")).words == ("Oslo", "rained", ".")  # type: ignore[arg-type]


def test_bytes_that_are_no_text_are_named_by_their_line() -> None:
    with pytest.raises(FormatError, match="file:2: not UTF-8 at byte 3"):
        list(raw_sentences(io.BytesIO(b"fine\nno\xff\n"), "d", "file"))


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert list(raw_sentences(io.BytesIO(b"\xef\xbb\xbf" + TEXT.encode()), "d", "file")) == list(text_sentences(TEXT, "d"))


def test_no_text_no_sentences() -> None:
    for raw in (b"", b"\n\n \n", b"\xef\xbb\xbf"):
        assert list(raw_sentences(io.BytesIO(raw), "d", "file")) == []
