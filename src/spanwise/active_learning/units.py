"""The units that are annotated: single sentences or whole documents; which of them are annotated already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

from spanwise.core.types import Sentence
from spanwise.formats.shared.documents import group_by_document

UNITS = ("sentence", "document")


class SeenTexts:
    """Texts that are annotated or were in the pool before, as hashes of 8 bytes.

    White space and case do not count, so that a text is recognised also if it was split into other
    words.

    >>> seen = SeenTexts()
    >>> seen.add(Sentence("1", ("Oslo", "is", "big", "."))), seen.add(Sentence("2", ("Oslo", "is", "BIG.")))
    (True, False)
    """

    def __init__(self, sentences: Iterable[Sentence] = ()) -> None:
        self._hashes: set[int] = set()
        for sentence in sentences:
            self.add(sentence)

    def add(self, sentence: Sentence) -> bool:
        """Remember a sentence; return whether it is new."""
        key = _hash(sentence)
        is_new = key not in self._hashes
        self._hashes.add(key)
        return is_new

    def __contains__(self, sentence: Sentence) -> bool:
        return _hash(sentence) in self._hashes


def _hash(sentence: Sentence) -> int:
    text = "".join("".join(sentence.words).split()).casefold()
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def group_by_unit(sentences: Iterable[Sentence], unit: str) -> Iterator[Sequence[Sentence]]:
    """Yield the sentences of each unit; those of a document must follow each other in the pool.

    >>> rows = [Sentence(str(number), ("a",), document=name) for number, name in enumerate("xxy")]
    >>> [len(group) for group in group_by_unit(rows, "document")], [len(group) for group in group_by_unit(rows, "sentence")]
    ([2, 1], [1, 1, 1])
    """
    return group_by_document(sentences) if unit == "document" else ([sentence] for sentence in sentences)
