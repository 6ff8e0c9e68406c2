"""The document that each sentence of a stream belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from spanwise.core.types import Sentence

DocumentKey: TypeAlias = tuple[str | None, int]  # the document's name, and its number among documents of that name


def document_keys(sentences: Iterable[Sentence]) -> Iterator[DocumentKey]:
    """Yield the key of each sentence's document.

    A document has one sentence per position, so a repeated position starts a new document of the
    same name.

    >>> list(document_keys(Sentence("s", ("a",), document="d", position=position) for position in (1, 0, 0, 1)))
    [('d', 0), ('d', 0), ('d', 1), ('d', 1)]
    """
    numbers: Counter[str | None] = Counter()
    seen: set[tuple[DocumentKey, int]] = set()
    for sentence in sentences:
        key = sentence.document, numbers[sentence.document]
        if (key, sentence.position) in seen:
            numbers[sentence.document] += 1
            key = sentence.document, numbers[sentence.document]
        if sentence.position is not None:
            seen.add((key, sentence.position))
        yield key
