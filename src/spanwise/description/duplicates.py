"""Repeated sentences: within a split, across splits, and with different labels.

For each sentence two digests of 16 bytes are kept, one of its words and one of its labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations
from typing import Any

from spanwise.core.types import Entity, Sentence

DIGEST_SIZE = 16
MAX_EXAMPLES = 5
Example = dict[str, str]  # split, id, text


def digest(value: object) -> bytes:
    """Return the digest of a value's ``repr``, which distinguishes words with any characters.

    >>> digest(("a", "b")) == digest(("a", "b")), digest(("a b",)) == digest(("a", "b"))
    (True, False)
    """
    return blake2b(repr(value).encode("utf-8"), digest_size=DIGEST_SIZE).digest()


UNLABELLED = digest(([], []))


def label_digest(sentence: Sentence) -> bytes:
    """Return the digest of the distinct entities and relations, independent of their order.

    Relations across sentences are ignored, because the same words may occur in another document.
    """
    if not sentence.entities:
        return UNLABELLED  # one shared object saves memory
    names = [(entity.type, *map(tuple, entity.fragments)) for entity in sentence.entities]
    relations = {(relation.type, names[relation.head], names[relation.tail]) for relation in sentence.relations}
    return digest((sorted(set(names)), sorted(relations)))


@dataclass
class Conflicts:
    """Counts of word sequences with different annotations: in total, per split, and per pair of splits.

    ``examples`` are sentences that contradict an earlier one.
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


class DuplicateSentences:
    """Finds repeated sentences. Add all sentences of a split before those of the next.

    The labels of partially annotated sentences are not compared: what they lack may just not be annotated.

    >>> overlap = DuplicateSentences(["train", "test"])
    >>> overlap.add("train", Sentence("a", ("Hello", "!")))
    True
    >>> overlap.add("test", Sentence("b", ("Hello", "!"))), overlap.add("test", Sentence("c", ("Hello", "!")))
    (True, False)
    >>> overlap.shared(), overlap.also_in("train")
    ({'train&test': 1}, {'test': 2})
    """

    def __init__(self, splits: list[str]) -> None:
        # For each word sequence: the concatenated digests of its different annotations, and the number of repetitions.
        self._labels: dict[str, dict[bytes, bytes]] = {split: {} for split in splits}
        self._repeats: dict[str, dict[bytes, int]] = {split: {} for split in splits}
        self._examples: list[Example] = []

    def add(self, split: str, sentence: Sentence) -> bool:
        """Add a sentence; return True if its words are new in the split."""
        words, labels = digest(sentence.words), label_digest(sentence) if sentence.annotated is None else b""
        others = (known[words] for known in self._labels.values() if known.get(words))
        if labels and len(self._examples) < MAX_EXAMPLES and any(not _has_digest(other, labels) for other in others):
            self._examples.append(make_example(split, sentence, sentence.text))
        known = self._labels[split]
        if words not in known:
            known[words] = labels
            return True
        repeats = self._repeats[split]
        repeats[words] = repeats.get(words, 0) + 1
        if labels and not _has_digest(known[words], labels):
            known[words] += labels
        return False

    def count(self, split: str) -> int:
        """Return the number of sentences that repeat an earlier one of the split."""
        return sum(self._repeats[split].values())

    def shared(self) -> dict[str, int]:
        """Return the number of distinct word sequences that each pair of splits has in common."""
        return {f"{a}&{b}": len(self._common(a, b)) for a, b in combinations(self._labels, 2)}

    def also_in(self, split: str) -> dict[str, int]:
        """Return for each other split the number of its sentences that also occur in this split."""
        if split not in self._labels:
            return {}
        others = [other for other in self._labels if other != split]
        return {other: sum(1 + self._repeats[other].get(w, 0) for w in self._common(split, other)) for other in others}

    def conflicts(self) -> Conflicts:
        result, conflicting = Conflicts(examples=self._examples), set[bytes]()
        for split, known in self._labels.items():
            within = {words for words, labels in known.items() if len(labels) > DIGEST_SIZE}
            result.within[split] = len(within)
            conflicting |= within
        for a, b in combinations(self._labels, 2):
            first, second = self._labels[a], self._labels[b]
            common = [words for words in self._common(a, b) if first[words] and second[words]]
            across = {words for words in common if first[words] != second[words] or len(first[words]) > DIGEST_SIZE}
            result.across[f"{a}&{b}"] = len(across)
            conflicting |= across
        result.sequences = len(conflicting)
        return result

    def _common(self, a: str, b: str) -> set[bytes]:
        return self._labels[a].keys() & self._labels[b].keys()


def _has_digest(joined: bytes, labels: bytes) -> bool:
    return any(joined[start : start + DIGEST_SIZE] == labels for start in range(0, len(joined), DIGEST_SIZE))


def make_example(split: str, sentence: Sentence, excerpt: Entity | str) -> Example:
    """Return an example: a split, a sentence id, and an entity or text of the sentence."""
    text = excerpt if isinstance(excerpt, str) else sentence.text_of(excerpt)
    return {"split": split, "id": sentence.id, "text": shorten(text)}


def shorten(text: str, limit: int = 80) -> str:
    """Put a text on one line and cut it at ``limit`` characters.

    >>> shorten("two\\nlines"), shorten("a long text", limit=6)
    ('two lines', 'a lon…')
    """
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def printable_line(text: str) -> str:
    """Put a text on one line and replace unprintable characters, for the terminal.

    >>> printable_line("a\\tb\\x1b[0m")
    'a b\ufffd[0m'
    """
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))
