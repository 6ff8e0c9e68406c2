"""The distinct words of texts, so that each word is looked up once. NumPy only, for every runtime."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.integer[Any])
Ints = npt.NDArray[np.int64]


def number_words(texts: Sequence[Sequence[str]]) -> tuple[list[str], Ints]:
    """The distinct words in order of occurrence, and the number of each word of all texts, one text after the other.

    >>> words, numbers = number_words([["a", "rose"], [], ["is", "a"]])
    >>> words, numbers.tolist()
    (['a', 'rose', 'is'], [0, 1, 2, 0])
    """
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    flat = np.fromiter(map(numbers.__getitem__, chain.from_iterable(texts)), np.int64, sum(map(len, texts)))
    return list(numbers), flat


def cut(flat: npt.NDArray[Number], ends: Sequence[int]) -> Iterator[npt.NDArray[Number]]:
    """The parts of an array that end at ``ends``.

    >>> [part.tolist() for part in cut(np.arange(3), [2, 2, 3])]
    [[0, 1], [], [2]]
    """
    start = 0
    for end in ends:
        yield flat[start:end]
        start = end
