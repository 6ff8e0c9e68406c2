"""The words, characters and part-of-speech tags that an encoder knows, as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from spanwise.core.types import Sentence

Ints = npt.NDArray[np.int32]

PADDING, UNKNOWN = 0, 1  # of words, characters and tags alike
_FIRST, _LAST = 20, 10


@dataclass(frozen=True)
class Vocabulary:
    """What is numbered. Numbers 0 and 1 are padding and the unknown; those of the tuples follow, each from 2.

    ``learned`` are words whose vectors training changes, ``given`` those whose vectors stay as a file gave them; they are
    numbered in one row, learned first. A word is looked up as it stands, then in lower case, and is unknown otherwise.

    >>> words = Vocabulary(learned=("tumour", "of"), given=("Paris", "colon"))
    >>> words.word_numbers(["tumour", "Of", "Paris", "PARIS"]).tolist()
    [2, 3, 4, 1]
    """

    learned: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    characters: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    _words: dict[str, int] = field(init=False, repr=False, compare=False)
    _characters: dict[str, int] = field(init=False, repr=False, compare=False)
    _tags: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_words", _numbered((*self.learned, *self.given)))
        object.__setattr__(self, "_characters", _numbered(self.characters))
        object.__setattr__(self, "_tags", _numbered(self.tags))

    @classmethod
    def build(
        cls,
        sentences: Iterable[Sentence],
        given: Sequence[str] = (),
        *,
        freeze: bool = True,
        lowercase: bool = True,
        min_count: int = 1,
    ) -> Self:
        """The vocabulary of training sentences and of a vector file's words.

        Words that the file knows stay as given, or with ``freeze=False`` are learned, beginning from the file's vectors.
        Words that it does not know are learned, in lower case when ``lowercase`` says so. Both must occur ``min_count`` times.
        """
        words: Counter[str] = Counter()
        tags: set[str] = set()
        for sentence in sentences:
            words.update(sentence.words)
            tags.update(sentence.pos or ())
        known = set(given)
        keys: Counter[str] = Counter()
        for word, count in words.items():
            small = word.lower()
            keys[word if word in known else small if lowercase or small in known else word] += count
        learned = [key for key, n in keys.items() if n >= min_count and not (freeze and key in known)]
        learned.sort(key=lambda key: (-keys[key], key))
        rest = known.difference(learned)
        return cls(
            tuple(learned), tuple(word for word in given if word in rest), _frequent_characters(words), tuple(sorted(tags))
        )

    def word_numbers(self, words: Sequence[str]) -> Ints:
        known = self._words
        return np.fromiter((known.get(w) or known.get(w.lower(), UNKNOWN) for w in words), np.int32, len(words))

    def tag_numbers(self, sentence: Sentence) -> Ints:
        """Unknown throughout for a sentence without tags."""
        if sentence.pos is None:
            return np.full(len(sentence.words), UNKNOWN, np.int32)
        return np.fromiter((self._tags.get(tag, UNKNOWN) for tag in sentence.pos), np.int32, len(sentence.pos))

    def spelling(self, word: str) -> bytes:
        """The numbers of a word's characters (32 bits each), as bytes: they can be looked up, so a batch spells no word twice.

        A word of more than 30 characters is spelled by its first 20 and its last 10.
        """
        if len(word) > _FIRST + _LAST:
            word = word[:_FIRST] + word[-_LAST:]
        return np.array([self._characters.get(c, UNKNOWN) for c in word], np.int32).tobytes()

    def to_json(self) -> dict[str, tuple[str, ...]]:
        return {"learned": self.learned, "given": self.given, "characters": self.characters, "tags": self.tags}

    @classmethod
    def from_json(cls, record: Mapping[str, Sequence[str]]) -> Self:
        return cls(**{name: tuple(values) for name, values in record.items()})


def _frequent_characters(words: Mapping[str, int]) -> tuple[str, ...]:
    """Those that occur more than once; the others train the unknown character."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    return tuple(sorted(character for character, count in counts.items() if count > 1))


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names, UNKNOWN + 1)}
