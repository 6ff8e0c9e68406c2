"""Raw text as sentences: a string, or a stream of lines that need not end before the first sentence comes out.

Sentences and words are split by rule (``spanwise.text``), or by whatever the caller hands over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import IO, TypeAlias

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.files.reading import decode
from spanwise.text import split_sentences, split_words

TEXT = "text"  # said in the place of a format, where plain text may be read

# Takes a text and gives its sentences, each as the character ranges (start, end) of its words.
Splitter: TypeAlias = Callable[[str], Iterable[Iterable[tuple[int, int]]]]


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


def given_sentences(text: str, document: str, sentences: Iterable[Iterable[tuple[int, int]]]) -> Iterator[Sentence]:
    """The sentences of a text that somebody else split; what stands between two belongs to the first.

    >>> found = given_sentences("It rained.  Nobody came", "d", [[(0, 2), (3, 9)], [(12, 18), (19, 23)]])
    >>> [(s.words, s.text, s.start) for s in found]
    [(('It', 'rained'), 'It rained.  ', 0), (('Nobody', 'came'), 'Nobody came', 12)]
    """
    several = [words for words in map(list, sentences) if words]
    borders = [0, *(words[0][0] for words in several[1:]), len(text)]
    for number, (words, (first, last)) in enumerate(zip(several, pairwise(borders), strict=False)):
        places = [first, *(place for word in words for place in word), last]
        if any(a > b for a, b in pairwise(places)) or any(a == b for a, b in words):
            raise SpanwiseError(
                f"the splitter's sentence {number} has words that are empty, out of order or not in the text, "
                f"which has {len(text)} characters; expected (start, end) for each word"
            )
        yield Sentence(
            id=f"{document}-{number}",
            words=tuple(text[a:b] for a, b in words),
            text=text[first:last],
            starts=tuple(a - first for a, _ in words),
            document=document,
            position=number,
            start=first,
        )


def raw_sentences(file: IO[bytes], document: str, path: str) -> Iterator[Sentence]:
    """The sentences of a stream of UTF-8 text. A line end always ends a sentence, so lines are split one by one.

    Blank lines belong to the sentence before them, so that the sentences are the whole text again.
    """
    position = start = 0
    for text in _paragraphs(file, path):
        for sentence in text_sentences(text, document, position, start):
            if sentence.words:
                yield sentence
                position += 1
        start += len(text)


def _paragraphs(file: IO[bytes], path: str) -> Iterator[str]:
    """Lines, each with the blank ones behind it; the first one with those before it, too."""
    held: list[str] = []
    is_blank = True
    with file:
        for number, raw in enumerate(file, 1):
            line = decode(raw, path, number)
            if line.strip():
                if not is_blank:
                    yield "".join(held)
                    held = []
                is_blank = False
            held.append(line)
    yield "".join(held)
