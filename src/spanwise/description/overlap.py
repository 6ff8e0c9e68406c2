"""Sentences that occur again: within a split, in another split, and with other labels than before.

Of a sentence two digests of sixteen bytes are kept, one of its words and one of its labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations
from typing import Any

from spanwise.core.types import Entity, Sentence

SIZE = 16
EXAMPLES = 5
Example = dict[str, str]  # split, id, text


def digest(value: object) -> bytes:
    """The digest of what ``repr`` says, which tells words apart whatever characters they have.

    >>> digest(("a", "b")) == digest(("a", "b")), digest(("a b",)) == digest(("a", "b"))
    (True, False)
    """
    return blake2b(repr(value).encode("utf-8"), digest_size=SIZE).digest()


UNLABELLED = digest(([], []))


def label_digest(sentence: Sentence) -> bytes:
    """The digest of the distinct entities and relations, in whatever order they are given.

    Relations across sentences do not count: the same words may stand in another document.
    """
    if not sentence.entities:
        return UNLABELLED  # always the same object, which saves memory
    names = [(entity.type, *map(tuple, entity.fragments)) for entity in sentence.entities]
    relations = {(relation.type, names[relation.head], names[relation.tail]) for relation in sentence.relations}
    return digest((sorted(set(names)), sorted(relations)))


@dataclass
class Conflicts:
    """Word sequences that occur with two or more annotations: in all, within each split, between each pair of splits.

    ``examples`` names sentences that contradict one read before.
    """

    sequences: int = 0
    within: dict[str, int] = field(default_factory=dict)
    across: dict[str, int] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "sequences": self.sequences,
            "within": self.within,
            "across": self.across,
            "examples": self.examples,
        }


class Overlap:
    """Fed with the sentences of one split after the other.

    >>> overlap = Overlap(["train", "test"])
    >>> overlap.add("train", Sentence("a", ("Hello", "!")))
    True
    >>> overlap.add("test", Sentence("b", ("Hello", "!"))), overlap.add("test", Sentence("c", ("Hello", "!")))
    (True, False)
    >>> overlap.shared(), overlap.also_in("train")
    ({'train&test': 1}, {'test': 2})
    """

    def __init__(self, splits: list[str]) -> None:
        # For each word sequence the digests of its different annotations, one behind the other, and how often it occurs
        # beyond the first time where it does.
        self._labels: dict[str, dict[bytes, bytes]] = {split: {} for split in splits}
        self._again: dict[str, dict[bytes, int]] = {split: {} for split in splits}
        self._examples: list[Example] = []

    def add(self, split: str, sentence: Sentence) -> bool:
        """True when the split did not have these words before."""
        words, labels = digest(sentence.words), label_digest(sentence)
        if len(self._examples) < EXAMPLES and any(
            words in known and not _has(known[words], labels) for known in self._labels.values()
        ):
            self._examples.append(example(split, sentence, sentence.text))
        known = self._labels[split]
        if words not in known:
            known[words] = labels
            return True
        again = self._again[split]
        again[words] = again.get(words, 0) + 1
        if not _has(known[words], labels):
            known[words] += labels
        return False

    def duplicates(self, split: str) -> int:
        """The sentences whose words the split had before."""
        return sum(self._again[split].values())

    def shared(self) -> dict[str, int]:
        """For each pair of splits the number of different word sequences that both have."""
        return {f"{a}&{b}": len(self._common(a, b)) for a, b in combinations(self._labels, 2)}

    def also_in(self, split: str) -> dict[str, int]:
        """For every other split the number of its sentences whose words occur in this one."""
        if split not in self._labels:
            return {}
        others = [other for other in self._labels if other != split]
        return {other: sum(1 + self._again[other].get(w, 0) for w in self._common(split, other)) for other in others}

    def conflicts(self) -> Conflicts:
        result, everywhere = Conflicts(examples=self._examples), set[bytes]()
        for split, known in self._labels.items():
            found = {words for words, labels in known.items() if len(labels) > SIZE}
            result.within[split] = len(found)
            everywhere |= found
        for a, b in combinations(self._labels, 2):
            one, other = self._labels[a], self._labels[b]
            found = {words for words in self._common(a, b) if one[words] != other[words] or len(one[words]) > SIZE}
            result.across[f"{a}&{b}"] = len(found)
            everywhere |= found
        result.sequences = len(everywhere)
        return result

    def _common(self, a: str, b: str) -> set[bytes]:
        return self._labels[a].keys() & self._labels[b].keys()


def _has(joined: bytes, labels: bytes) -> bool:
    return any(joined[at : at + SIZE] == labels for at in range(0, len(joined), SIZE))


def example(split: str, sentence: Sentence, what: Entity | str) -> Example:
    """A place to look at: an entity, or some text of a sentence."""
    text = what if isinstance(what, str) else sentence.text_of(what)
    return {"split": split, "id": sentence.id, "text": shortened(text)}


def shortened(text: str, limit: int = 80) -> str:
    """A text on one line, cut where it is long.

    >>> shortened("two\\nlines"), shortened("a long text", limit=6)
    ('two lines', 'a lon…')
    """
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def shown(text: str) -> str:
    """A text fit for a terminal: on one line, with a mark in place of what cannot be printed.

    >>> shown("a\\tb\\x1b[0m")
    'a b\ufffd[0m'
    """
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))
