"""Unique names for documents and sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from spanwise.core.types import Sentence
from spanwise.formats.base import Ledger


class UniqueNames:
    """Makes names unique by numbering repeated ones, with a note in the ledger.

    Names with the same ``key`` count as equal. ``description`` is the subject of the note.

    >>> names = UniqueNames(Ledger(), key=str.lower)
    >>> [names.make_unique(name) for name in ("notes", "letter", "Notes", "notes")]
    ['notes', 'letter', 'Notes-2', 'notes-3']
    """

    def __init__(
        self,
        ledger: Ledger | None = None,
        key: Callable[[str], str] = str,
        description: str = "documents with a duplicate name",
    ) -> None:
        self.ledger, self.key, self.description, self.taken = ledger, key, description, Counter[str]()

    def make_unique(self, name: str) -> str:
        unique = name
        while self.key(unique) in self.taken:
            self.taken[self.key(name)] += 1
            unique = f"{name}-{self.taken[self.key(name)]}"
        if self.ledger is not None:
            self.ledger.note(f"{self.description}, numbered", int(unique != name))
        self.taken[self.key(unique)] = 1
        return unique


class UniqueIds:
    """Numbers sentence ids that an earlier file already uses, and the documents of such sentences.

    Ids that repeat within one file stay unchanged. A document may continue in a later file with new
    sentence ids; if it starts again at position 0, it is a different document.

    >>> ids, files = UniqueIds(), (("s1", "s2", "s2"), ("s2", "s3"))
    >>> [sentence.id for names in files for sentence in ids.rename(Sentence(name, ("word",)) for name in names)]
    ['s1', 's2', 's2', 's2-2', 's3']
    """

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ids = UniqueNames(ledger, description="sentences with an id from an earlier file")
        self.documents = UniqueNames(ledger)

    def rename(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """Yield the sentences of the next file with unique ids."""
        ids: dict[str, str] = {}
        documents: dict[str | None, str | None] = {None: None}
        for sentence in sentences:
            id, document = sentence.id, sentence.document
            if id not in ids:
                ids[id] = self.ids.make_unique(id)
            if document is not None and document not in documents:
                continues = ids[id] == id and document in self.documents.taken and sentence.position != 0
                documents[document] = document if continues else self.documents.make_unique(document)
            is_unchanged = (id, document) == (ids[id], documents[document])
            yield sentence if is_unchanged else replace(sentence, id=ids[id], document=documents[document])
