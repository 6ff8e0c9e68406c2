"""Corpora: splits of sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spanwise.core.counting import counted
from spanwise.core.sentence import Sentence


@dataclass(frozen=True, repr=False)
class Corpus(Mapping[str, tuple[Sentence, ...]]):
    """A mapping of splits by name (``train``, ``dev``, ``test``), each a tuple of sentences.

    ``read_corpus`` reads one from files. Build one to train on sentences that are in memory.

    >>> corpus = Corpus({"train": (Sentence("s1", ("Hello",)),)})
    >>> len(corpus["train"]), corpus.types
    (1, ())
    >>> corpus
    Corpus('', train: 1 sentence; 0 types)
    """

    splits: Mapping[str, tuple[Sentence, ...]]
    name: str = ""

    def __repr__(self) -> str:
        """Sizes and types instead of all sentences, so that a corpus fits a screen."""
        splits = ", ".join(f"{split}: {counted(len(sentences), 'sentence')}" for split, sentences in self.splits.items())
        if not splits:
            return f"Corpus({self.name!r}, no splits)"
        return f"Corpus({self.name!r}, {splits}; {_listed('type', self.types)}{_listed_relations(self.relation_types)})"

    def __getitem__(self, split: str) -> tuple[Sentence, ...]:
        return self.splits[split]

    def __iter__(self) -> Iterator[str]:
        return iter(self.splits)

    def __len__(self) -> int:
        """The number of splits."""
        return len(self.splits)

    @property
    def types(self) -> tuple[str, ...]:
        """The entity types of all splits, sorted."""
        return tuple(sorted({e.type for sentences in self.splits.values() for s in sentences for e in s.entities}))

    @property
    def relation_types(self) -> tuple[str, ...]:
        """The relation types of all splits, sorted."""
        sentences = [s for split in self.splits.values() for s in split]
        return tuple(sorted({r.type for s in sentences for r in s.relations} | {k.type for s in sentences for k in s.links}))


def _listed(noun: str, names: tuple[str, ...]) -> str:
    """The number of names and the first ten of them, each shortened to 20 characters."""
    shown = ", ".join(name if len(name) <= 20 else f"{name[:19]}…" for name in names[:10])
    return f"{counted(len(names), noun)}{': ' * bool(names)}{shown}{', …' * (len(names) > 10)}"


def _listed_relations(names: tuple[str, ...]) -> str:
    return f"; {_listed('relation type', names)}" if names else ""
