"""Raw text as sentences: a string, or a stream of lines that need not end before the first sentence comes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from spanwise.formats.files import decode
from spanwise.text import split_sentences, split_words
from spanwise.types import Sentence


def text_sentences(text: str, document: str, position: int = 0, start: int = 0) -> Iterator[Sentence]:
    """The sentences of a text that begins at character ``start`` of a document, numbered from ``position``.

    >>> [(s.id, s.words, s.start) for s in text_sentences("It rained. Nobody came.", "d")]
    [('d-0', ('It', 'rained', '.'), 0), ('d-1', ('Nobody', 'came', '.'), 11)]
    """
    for number, (first, last) in enumerate(split_sentences(text), position):
        words = split_words(text[first:last])
        yield Sentence(
            id=f"{document}-{number}",
            words=tuple(text[first + a : first + b] for a, b in words),
            text=text[first:last],
            starts=tuple(a for a, _ in words),
            document=document,
            position=number,
            start=start + first,
        )


def raw_sentences(file: IO[bytes], document: str, path: str) -> Iterator[Sentence]:
    """The sentences of a stream of UTF-8 text. A line end always ends a sentence, so lines are split one by one."""
    position, start = 0, 0
    with file:
        for number, raw in enumerate(file, 1):
            line = decode(raw, path, number)
            for sentence in text_sentences(line, document, position, start):
                if sentence.words:
                    yield sentence
                    position += 1
            start += len(line)
