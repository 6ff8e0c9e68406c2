"""Names that must not come twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from spanwise.core.types import Sentence
from spanwise.formats.base import Ledger


class DistinctNames:
    """Names as they come: one that another has already is numbered, and the ledger says so.

    ``key`` tells which names count as the same, and ``what`` has them.

    >>> names = DistinctNames(Ledger(), key=str.lower)
    >>> [names.of(name) for name in ("notes", "letter", "Notes", "notes")]
    ['notes', 'letter', 'Notes-2', 'notes-3']
    """

    def __init__(
        self, ledger: Ledger | None = None, key: Callable[[str], str] = str, what: str = "documents with the name of another"
    ) -> None:
        self.ledger, self.key, self.what, self.taken = ledger, key, what, Counter[str]()

    def of(self, name: str) -> str:
        unique = name
        while self.key(unique) in self.taken:
            self.taken[self.key(name)] += 1
            unique = f"{name}-{self.taken[self.key(name)]}"
        if self.ledger is not None:
            self.ledger.note(f"{self.what}, numbered", int(unique != name))
        self.taken[self.key(unique)] = 1
        return unique


class DistinctIds:
    """Sentences of several files: an id that an earlier file has is numbered, and so is the document of such a sentence.

    What comes twice within one file is left alone, and so is a document that goes on in another file under other ids; one that
    begins there is another.

    >>> ids, files = DistinctIds(), (("s1", "s2", "s2"), ("s2", "s3"))
    >>> [sentence.id for names in files for sentence in ids.of(Sentence(name, ("word",)) for name in names)]
    ['s1', 's2', 's2', 's2-2', 's3']
    """

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ids = DistinctNames(ledger, what="sentences with the id of one in another file")
        self.documents = DistinctNames(ledger)

    def of(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """The sentences of the next file."""
        ids: dict[str, str] = {}
        documents: dict[str | None, str | None] = {None: None}
        for sentence in sentences:
            name, document = sentence.id, sentence.document
            if name not in ids:
                ids[name] = self.ids.of(name)
            if document is not None and document not in documents:
                goes_on = ids[name] == name and document in self.documents.taken and sentence.position != 0
                documents[document] = document if goes_on else self.documents.of(document)
            is_known = (name, document) == (ids[name], documents[document])
            yield sentence if is_known else replace(sentence, id=ids[name], document=documents[document])
