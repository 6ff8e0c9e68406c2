"""Occurrences and annotations of strings in the training sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from spanwise.core.types import Sentence
from spanwise.evaluation.scores import ratio

Words = tuple[str, ...]


class TrainIndex:
    """Index of the words and entities of the training sentences.

    A string is a case-sensitive sequence of words. It occurs where these words are consecutive, and
    where they are the words of a discontinuous entity.

    >>> from spanwise.core.types import Entity
    >>> index = TrainIndex([Sentence("s", ("rain", "and", "rain"), (Entity("Weather", ((0, 1),)),))])
    >>> index.occurrences(("rain",)), index.annotations(("rain",)), index.consistency(("rain",), "Weather")
    (2, 1, 0.5)
    """

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        self._stream: list[str] = []  # all words, with an empty string after each sentence, which no string contains
        self._indices: dict[str, list[int]] = {}  # of each word in the stream
        self._annotations: dict[Words, Counter[str]] = {}  # counts of the types of each string
        self._discontinuous: Counter[Words] = Counter()
        self._types: Counter[str] = Counter()
        self._occurrences: dict[Words, int] = {}  # cache
        for sentence in sentences:
            for index, word in enumerate(sentence.words, len(self._stream)):
                self._indices.setdefault(word, []).append(index)
            self._stream += (*sentence.words, "")
            discontinuous = set()
            for entity in set(sentence.entities):
                words = sentence.words_of(entity)
                self._annotations.setdefault(words, Counter())[entity.type] += 1
                self._types[entity.type] += 1
                if entity.is_discontinuous:
                    discontinuous.add((entity.fragments, words))
            self._discontinuous.update(words for _, words in discontinuous)

    @classmethod
    def of(cls, train: TrainIndex | Iterable[Sentence] | None) -> TrainIndex | None:
        """The index of training sentences, unless it is one already; None without sentences."""
        return train if train is None or isinstance(train, TrainIndex) else cls(train)

    def has_word(self, word: str) -> bool:
        return word in self._indices

    def occurrences(self, words: Words) -> int:
        """Number of occurrences of a string, annotated or not."""
        if words not in self._occurrences:
            self._occurrences[words] = self._count_consecutive(list(words)) + self._discontinuous[words]
        return self._occurrences[words]

    def annotations(self, words: Words) -> int:
        """Number of entities with these words."""
        return self._annotations[words].total() if words in self._annotations else 0

    def consistency(self, words: Words, type: str) -> float:
        """Share of the string's occurrences that are entities of this type; 0 if it does not occur."""
        return ratio(self._annotations[words][type], self.occurrences(words)) if words in self._annotations else 0.0

    def type_share(self, type: str) -> float:
        """Share of the entities that have this type."""
        return ratio(self._types[type], self._types.total())

    def _count_consecutive(self, words: list[str]) -> int:
        if not all(map(self.has_word, words)) or not words:
            return 0
        rarest = min(range(len(words)), key=lambda index: len(self._indices[words[index]]))
        # A negative start gives a slice that is too short to be equal.
        starts = (index - rarest for index in self._indices[words[rarest]])
        return sum(self._stream[start : start + len(words)] == words for start in starts)
