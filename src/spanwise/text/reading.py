"""Sentences from a text or a stream of lines, split by rules or by the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import IO, TypeAlias

from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.sentence import trusted_sentence
from spanwise.core.types import Sentence
from spanwise.files.reading import decode_line
from spanwise.text.sentences import split_sentences
from spanwise.text.words import words_with_starts

TEXT = "text"  # the format name for plain text

# Maps a text to its sentences, each a list of the character ranges (start, end) of its words.
Splitter: TypeAlias = Callable[[str], Iterable[Iterable[tuple[int, int]]]]


def sentences_from_text(text: str, document: str, position: int = 0, start: int = 0) -> Iterator[Sentence]:
    """Yield the sentences of a text that starts at character ``start`` of a document.

    ``position`` is the position of the first sentence.

    >>> [(s.id, s.words, s.start) for s in sentences_from_text("It rained. Nobody came.", "d")]
    [('d-0', ('It', 'rained', '.'), 0), ('d-1', ('Nobody', 'came', '.'), 11)]
    """
    for index, (first, last) in enumerate(split_sentences(text), position):
        part = text[first:last]
        words, starts = words_with_starts(part)
        yield trusted_sentence(f"{document}-{index}", words, part, starts, document, index, start + first)


def sentences_from_splits(text: str, document: str, sentences: Iterable[Iterable[tuple[int, int]]]) -> Iterator[Sentence]:
    """Yield the sentences of a text that the caller split; text between two belongs to the first.

    >>> sentences = sentences_from_splits("It rained.  Nobody came", "d", [[(0, 2), (3, 9)], [(12, 18), (19, 23)]])
    >>> [(s.words, s.text, s.start) for s in sentences]
    [(('It', 'rained'), 'It rained.  ', 0), (('Nobody', 'came'), 'Nobody came', 12)]
    """
    non_empty = [words for words in map(list, sentences) if words]
    borders = [0, *(words[0][0] for words in non_empty[1:]), len(text)]
    for index, (words, (first, last)) in enumerate(zip(non_empty, pairwise(borders), strict=False)):
        offsets = [first, *(offset for word in words for offset in word), last]
        if any(a > b for a, b in pairwise(offsets)) or any(a == b for a, b in words):
            raise SpanwiseError(
                f"sentence {index} of the splitter has words that are empty, out of order or outside the text "
                f"of {counted(len(text), 'character')}; expected (start, end) for each word"
            )
        yield Sentence(
            id=f"{document}-{index}",
            words=tuple(text[a:b] for a, b in words),
            text=text[first:last],
            starts=tuple(a - first for a, _ in words),
            document=document,
            position=index,
            start=first,
        )


def sentences_from_stream(file: IO[bytes], document: str, path: str) -> Iterator[Sentence]:
    """Yield the sentences of a stream of UTF-8 text as its lines arrive; a line end ends a sentence.

    Blank lines belong to the sentence before them, so the sentences together are the whole text.
    """
    position = start = 0
    for text in _paragraphs(file, path):
        for sentence in sentences_from_text(text, document, position, start):
            if sentence.words:
                yield sentence
                position += 1
        start += len(text)


def _paragraphs(file: IO[bytes], path: str) -> Iterator[str]:
    """Yield each line with the blank lines after it; the first also with those before it."""
    paragraph: list[str] = []
    is_blank = True
    with file:
        for number, raw in enumerate(file, 1):
            line = decode_line(raw, path, number)
            if line.strip():
                if not is_blank:
                    yield "".join(paragraph)
                    paragraph = []
                is_blank = False
            paragraph.append(line)
    yield "".join(paragraph)
