"""What the training sentences say of a string: how often it stands there, and as what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from spanwise.core.types import Sentence
from spanwise.evaluation.scores import ratio

Words = tuple[str, ...]


class TrainIndex:
    """The words and entities of the training sentences, made once and asked as often as one likes.

    A string is a sequence of words, letter case kept. It occurs wherever these words stand one behind the other, and where a
    discontinuous entity has them.

    >>> from spanwise.core.types import Entity
    >>> index = TrainIndex([Sentence("s", ("rain", "and", "rain"), (Entity("Weather", ((0, 1),)),))])
    >>> index.occurrences(("rain",)), index.annotated(("rain",)), index.consistency(("rain",), "Weather")
    (2, 1, 0.5)
    """

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        self._stream: list[str] = []  # all words, with an empty one behind each sentence, which no string contains
        self._places: dict[str, list[int]] = {}
        self._annotated: dict[Words, Counter[str]] = {}
        self._broken: Counter[Words] = Counter()
        self._types: Counter[str] = Counter()
        self._known: dict[Words, int] = {}
        for sentence in sentences:
            for place, word in enumerate(sentence.words, len(self._stream)):
                self._places.setdefault(word, []).append(place)
            self._stream += (*sentence.words, "")
            broken = set()
            for entity in set(sentence.entities):
                words = sentence.words_of(entity)
                self._annotated.setdefault(words, Counter())[entity.type] += 1
                self._types[entity.type] += 1
                if entity.is_discontinuous:
                    broken.add((entity.fragments, words))
            self._broken.update(words for _, words in broken)

    def has(self, word: str) -> bool:
        return word in self._places

    def occurrences(self, words: Words) -> int:
        """How often the string occurs, annotated or not."""
        if words not in self._known:
            self._known[words] = self._unbroken(list(words)) + self._broken[words]
        return self._known[words]

    def annotated(self, words: Words) -> int:
        """How many entities have these words."""
        return self._annotated[words].total() if words in self._annotated else 0

    def consistency(self, words: Words, type: str) -> float:
        """The share of the string's occurrences that are entities of this type; 0 where it does not occur."""
        return ratio(self._annotated[words][type], self.occurrences(words)) if words in self._annotated else 0.0

    def prior(self, type: str) -> float:
        """The share of the entities that have this type."""
        return ratio(self._types[type], self._types.total())

    def _unbroken(self, words: list[str]) -> int:
        if not all(map(self.has, words)) or not words:
            return 0
        at = min(range(len(words)), key=lambda number: len(self._places[words[number]]))  # the rarest word is looked up
        begins = (place - at for place in self._places[words[at]])  # below 0, the slice is too short to be equal
        return sum(self._stream[begin : begin + len(words)] == words for begin in begins)
