"""What a head knows of a sentence's gold, worked out once and not at every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from spanwise.core.types import Sentence

Ints = npt.NDArray[np.int64]
T = TypeVar("T")
LIMIT = 1 << 18


class Memo(Generic[T]):
    """Calls ``make`` once per sentence and keeps the answer.

    Sentences are told apart by identity, for hashing their words at every step would cost as much as the work that is saved.
    The sentences are kept too, so no identity is used twice. Copies (for worker processes, say) start empty.

    >>> lengths = Memo(lambda sentence: np.array([len(sentence.words)]))
    >>> sentence = Sentence("s1", ("two", "words"))
    >>> lengths(sentence), lengths(sentence) is lengths(sentence)
    (array([2]), True)
    """

    def __init__(self, make: Callable[[Sentence], T]) -> None:
        self.make = make
        self._kept: dict[int, tuple[Sentence, T]] = {}

    def __call__(self, sentence: Sentence) -> T:
        kept = self._kept.get(id(sentence))
        if kept is None:
            if len(self._kept) >= LIMIT:
                self._kept.clear()
            kept = self._kept[id(sentence)] = (sentence, self.make(sentence))
        return kept[1]

    def __getstate__(self) -> dict[str, object]:
        return {"make": self.make, "_kept": {}}
