"""Which document each sentence of a stream belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from spanwise.core.types import Sentence

Document: TypeAlias = tuple[str | None, int]  # the document's name, and which of that name


def documents_of(sentences: Iterable[Sentence]) -> Iterator[Document]:
    """The document of each sentence. As one has one sentence at a position, a second there begins another of the same name.

    >>> list(documents_of(Sentence("s", ("a",), document="d", position=position) for position in (1, 0, 0, 1)))
    [('d', 0), ('d', 0), ('d', 1), ('d', 1)]
    """
    numbers: Counter[str | None] = Counter()
    taken: set[tuple[Document, int]] = set()
    for sentence in sentences:
        document = sentence.document, numbers[sentence.document]
        if (document, sentence.position) in taken:
            numbers[sentence.document] += 1
            document = sentence.document, numbers[sentence.document]
        if sentence.position is not None:
            taken.add((document, sentence.position))
        yield document
