"""The result of an audit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from spanwise.audit.suggestions import Suggestion
from spanwise.core.types import Corpus, Sentence


@dataclass(frozen=True)
class Audit:
    """The corpus, its sentences with their split by name, and the suggestions, the most certain first.

    ``files`` are those that were written for a person to read or edit. ``note`` is a problem of the models,
    if there is one.
    """

    corpus: Corpus
    keys: dict[str, tuple[str, Sentence]]
    suggestions: list[Suggestion]
    files: list[Path] = field(default_factory=list)
    note: str = ""

    @property
    def counts(self) -> Counter[str]:
        """The number of suggestions of each kind."""
        return Counter(item.kind for item in self.suggestions)
