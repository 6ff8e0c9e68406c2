"""Description of a corpus in one pass over its sentences, without keeping any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spanwise.core.types import Sentence
from spanwise.description.counts import SplitCounts
from spanwise.description.duplicates import Conflicts, DuplicateSentences
from spanwise.description.issues import Issue, SentenceChecks
from spanwise.description.labels import LabelDifferences, TypeCounts, compare_labels


@dataclass
class Description:
    """The result of ``describe``.

    ``shared`` counts the distinct word sequences that each pair of splits has in common.
    ``also_in_train`` counts the sentences of each other split whose words are also a sentence of train.
    """

    splits: dict[str, SplitCounts]
    shared: dict[str, int]
    also_in_train: dict[str, int]
    conflicts: Conflicts
    entity_types: LabelDifferences
    relation_types: LabelDifferences
    issues: list[Issue] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the description as values that JSON can represent."""
        return {
            "splits": {name: counts.to_json() for name, counts in self.splits.items()},
            "shared": self.shared,
            "also_in_train": self.also_in_train,
            "conflicts": self.conflicts.to_json(),
            "labels": {"entities": self.entity_types.to_json(), "relations": self.relation_types.to_json()},
            "issues": [issue.to_json() for issue in self.issues],
        }


def describe(splits: Mapping[str, Iterable[Sentence]]) -> Description:
    """Describe a corpus, given as sentences by split; each split is read once.

    Use it to look at a corpus before training. ``spanwise.description.findings.findings`` lists the
    problems in a description, such as test sentences that are also in train. Memory grows with the
    vocabulary, and per sentence by its id and a few digests of 16 bytes.

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
    checks = {name: SentenceChecks(name) for name in names}
    duplicates = DuplicateSentences(names)
    types = TypeCounts()
    for name, sentences in splits.items():
        for sentence in sentences:
            counts[name].add(sentence)
            words[name].update(sentence.words)
            # Sentences without words are reported as empty, not as duplicates.
            is_new = not sentence.words or duplicates.add(name, sentence)
            checks[name].add(sentence, is_new=is_new)
            types.add(name, sentence)
    for name in names:
        counts[name].duplicate_sentences = duplicates.count(name)
        if name != "train" and "train" in words:
            counts[name].oov_density = oov_density(words[name], words["train"])
    return Description(
        splits=counts,
        shared=duplicates.shared(),
        also_in_train=duplicates.also_in("train"),
        conflicts=duplicates.conflicts(),
        entity_types=compare_labels({name: counts[name].types for name in names}),
        relation_types=compare_labels({name: counts[name].relation_types for name in names}),
        issues=[*(issue for name in names for issue in checks[name].issues(words[name])), *types.issues()],
    )


def oov_density(words: Counter[str], known: Mapping[str, int]) -> float | None:
    """Return the share of words (tokens) that do not occur in the training sentences.

    This is φ_oDen of Bundling Learning for NER (Eq. 21). None if there are no words.

    >>> oov_density(Counter({"a": 3, "b": 1}), {"a": 7})
    0.25
    """
    total = words.total()
    return sum(count for word, count in words.items() if word not in known) / total if total else None
