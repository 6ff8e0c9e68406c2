"""Names that must not come twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from spanwise.formats.base import Ledger


class DistinctNames:
    """Names of documents as they come: one that another has already is numbered, and the ledger says so.

    ``key`` tells which names count as the same.

    >>> names = DistinctNames(Ledger(), key=str.lower)
    >>> [names.of(name) for name in ("notes", "letter", "Notes", "notes")]
    ['notes', 'letter', 'Notes-2', 'notes-3']
    """

    def __init__(self, ledger: Ledger | None = None, key: Callable[[str], str] = str) -> None:
        self.ledger, self.key, self.taken = ledger, key, Counter[str]()

    def of(self, name: str) -> str:
        unique = name
        while self.key(unique) in self.taken:
            self.taken[self.key(name)] += 1
            unique = f"{name}-{self.taken[self.key(name)]}"
        if self.ledger is not None:
            self.ledger.note("documents with the name of another, numbered", int(unique != name))
        self.taken[self.key(unique)] = 1
        return unique
