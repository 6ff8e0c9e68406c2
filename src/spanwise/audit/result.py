"""The result of an audit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from spanwise.audit.suggestions import Suggestion
from spanwise.core.types import Corpus, Sentence


@dataclass(frozen=True)
class Audit:
    """The corpus, its sentences with their split by name, and the suggestions, the most certain first."""

    corpus: Corpus
    keys: dict[str, tuple[str, Sentence]]
    suggestions: list[Suggestion]

    @property
    def counts(self) -> Counter[str]:
        """The number of suggestions of each kind."""
        return Counter(item.kind for item in self.suggestions)
