"""Indices of words, characters and part-of-speech tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from spanwise.core.types import Sentence

Ints = npt.NDArray[np.int32]

PADDING, UNKNOWN = 0, 1  # for words, characters and tags
_FIRST, _LAST = 20, 10  # characters of a long word that are read
LONGEST = _FIRST + _LAST


@dataclass(frozen=True)
class Vocabulary:
    """Words, characters and tags. Index 0 is padding and 1 is the unknown item; the items of each tuple follow from 2.

    ``learned`` are words with trained vectors, ``given`` words with fixed vectors from a file; both
    share one range of indices, learned words first. A word is looked up as written, then in lower
    case; otherwise it is unknown.

    >>> words = Vocabulary(learned=("tumour", "of"), given=("Paris", "colon"))
    >>> words.word_indices(["tumour", "Of", "Paris", "PARIS"]).tolist()
    [2, 3, 4, 1]
    """

    learned: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    characters: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    _words: dict[str, int] = field(init=False, repr=False, compare=False)
    _characters: Ints = field(init=False, repr=False, compare=False)  # by code point; the last is unknown
    _tags: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_words", _indices((*self.learned, *self.given)))
        object.__setattr__(self, "_characters", _by_code_point(self.characters))
        object.__setattr__(self, "_tags", _indices(self.tags))

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
        """The vocabulary of training sentences and the words of a vector file.

        Words of the file stay fixed or, with ``freeze=False``, are trained from the file's vectors.
        Other words are learned, in lower case if ``lowercase``. Learned words must occur
        ``min_count`` times.
        """
        words: Counter[str] = Counter()
        tags: set[str] = set()
        for sentence in sentences:
            words.update(sentence.words)
            tags.update(sentence.pos or ())
        in_file = set(given)
        keys: Counter[str] = Counter()
        for word, count in words.items():
            lower = word.lower()
            keys[word if word in in_file else lower if lowercase or lower in in_file else word] += count
        learned = [key for key, count in keys.items() if count >= min_count and not (freeze and key in in_file)]
        learned.sort(key=lambda key: (-keys[key], key))
        fixed = in_file.difference(learned)
        return cls(
            tuple(learned), tuple(word for word in given if word in fixed), _frequent_characters(words), tuple(sorted(tags))
        )

    def word_indices(self, words: Sequence[str]) -> Ints:
        indices = self._words
        return np.fromiter((indices.get(w) or indices.get(w.lower(), UNKNOWN) for w in words), np.int32, len(words))

    def tag_indices(self, sentence: Sentence) -> Ints:
        """The tags of a sentence; all unknown if it has none."""
        if sentence.pos is None:
            return np.full(len(sentence.words), UNKNOWN, np.int32)
        return np.fromiter((self._tags.get(tag, UNKNOWN) for tag in sentence.pos), np.int32, len(sentence.pos))

    def spell(self, words: Sequence[str]) -> tuple[Ints, npt.NDArray[np.int64]]:
        """The indices of the words' characters, one word after the other, and how many each word has.

        A word of more than 30 characters is spelled by its first 20 and its last 10.

        >>> [array.tolist() for array in Vocabulary(characters=("a", "b")).spell(["ba", "c"])]
        [[3, 2, 1], [2, 1]]
        """
        words = [word if len(word) <= LONGEST else word[:_FIRST] + word[-_LAST:] for word in words]
        code_points = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), "<u4")
        indices = self._characters[np.minimum(code_points, len(self._characters) - 1)]
        return indices, np.fromiter(map(len, words), np.int64, len(words))

    def to_json(self) -> dict[str, tuple[str, ...]]:
        return {"learned": self.learned, "given": self.given, "characters": self.characters, "tags": self.tags}


def _frequent_characters(words: Mapping[str, int]) -> tuple[str, ...]:
    """The characters that occur more than once; the others train the unknown character."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    return tuple(sorted(character for character, count in counts.items() if count > 1))


def _indices(names: Iterable[str]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names, UNKNOWN + 1)}


def _by_code_point(characters: Iterable[str]) -> Ints:
    """The index of every character up to the last known one, and of one more, which is unknown."""
    indices = {ord(name): index for name, index in _indices(characters).items() if len(name) == 1}
    table = np.full(max(indices, default=-1) + 2, UNKNOWN, np.int32)
    table[list(indices)] = list(indices.values())
    return table
