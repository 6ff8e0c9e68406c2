"""A corpus described in one pass over its sentences, none of which is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spanwise.core.types import Sentence
from spanwise.description.counts import SplitCounts
from spanwise.description.labels import Inventory, Types, inventory
from spanwise.description.overlap import Conflicts, Overlap
from spanwise.description.suspicions import Suspects, Suspicion


@dataclass
class Description:
    """What ``describe`` finds.

    ``shared`` counts for each pair of splits the different word sequences that both have; ``also_in_train`` the sentences of
    the other splits whose words occur in the training split.
    """

    splits: dict[str, SplitCounts]
    shared: dict[str, int]
    also_in_train: dict[str, int]
    conflicts: Conflicts
    entity_types: Inventory
    relation_types: Inventory
    suspicious: list[Suspicion] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The description in plain values, as ``json`` writes them."""
        return {
            "splits": {name: counts.to_json() for name, counts in self.splits.items()},
            "shared": self.shared,
            "also_in_train": self.also_in_train,
            "conflicts": self.conflicts.to_json(),
            "labels": {"entities": self.entity_types.to_json(), "relations": self.relation_types.to_json()},
            "suspicious": [suspicion.to_json() for suspicion in self.suspicious],
        }


def describe(splits: Mapping[str, Iterable[Sentence]]) -> Description:
    """Describe a corpus, given the sentences of its splits by name; each is read once.

    Memory grows with the vocabulary and by an id and some sixteen-byte digests a sentence, not with the text.

    >>> from spanwise.core.types import Entity
    >>> train = [Sentence("s1", ("New", "York", "grows"), entities=(Entity("Place", ((0, 2),)),))]
    >>> test = [Sentence("s2", ("York", "shrinks"), entities=(Entity("Place", ((0, 1),)),))]
    >>> description = describe({"train": train, "test": test})
    >>> description.splits["train"].max_width, description.splits["test"].oov_density
    (2, 0.5)
    """
    names = list(splits)
    counts = {name: SplitCounts() for name in names}
    words: dict[str, Counter[str]] = {name: Counter() for name in names}
    suspects = {name: Suspects(name) for name in names}
    overlap = Overlap(names)
    types = Types()
    for name, sentences in splits.items():
        for sentence in sentences:
            counts[name].add(sentence)
            words[name].update(sentence.words)
            # Sentences without words are reported as such, not as repetitions of each other.
            is_new = not sentence.words or overlap.add(name, sentence)
            suspects[name].add(sentence, is_new=is_new)
            types.add(name, sentence)
    for name in names:
        counts[name].duplicate_sentences = overlap.duplicates(name)
        if name != "train" and "train" in words:
            counts[name].oov_density = oov_density(words[name], words["train"])
    return Description(
        splits=counts,
        shared=overlap.shared(),
        also_in_train=overlap.also_in("train"),
        conflicts=overlap.conflicts(),
        entity_types=inventory({name: counts[name].types for name in names}),
        relation_types=inventory({name: counts[name].relation_types for name in names}),
        suspicious=[*(found for name in names for found in suspects[name].found(words[name])), *types.found()],
    )


def oov_density(words: Counter[str], known: Mapping[str, int]) -> float | None:
    """The share of words that do not occur in the training sentences, each word counted as often as it occurs.

    It is φ_oDen of Bundling Learning for NER (Eq. 21). None when there are no words.

    >>> oov_density(Counter({"a": 3, "b": 1}), {"a": 7})
    0.25
    """
    total = words.total()
    return sum(count for word, count in words.items() if word not in known) / total if total else None
