"""Corpora: splits of sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spanwise.core.sentence import Sentence


@dataclass(frozen=True)
class Corpus:
    """Splits by name (``train``, ``dev``, ``test``), each a tuple of sentences.

    >>> corpus = Corpus({"train": (Sentence("s1", ("Hello",)),)})
    >>> len(corpus["train"]), corpus.types
    (1, ())
    """

    splits: Mapping[str, tuple[Sentence, ...]]
    name: str = ""

    def __getitem__(self, split: str) -> tuple[Sentence, ...]:
        return self.splits[split]

    def __contains__(self, split: str) -> bool:
        return split in self.splits

    def __iter__(self) -> Iterator[str]:
        return iter(self.splits)

    @property
    def types(self) -> tuple[str, ...]:
        """The entity types of all splits, sorted."""
        return tuple(sorted({e.type for sentences in self.splits.values() for s in sentences for e in s.entities}))

    @property
    def relation_types(self) -> tuple[str, ...]:
        """The relation types of all splits, sorted."""
        sentences = [s for split in self.splits.values() for s in split]
        return tuple(sorted({r.type for s in sentences for r in s.relations} | {k.type for s in sentences for k in s.links}))
