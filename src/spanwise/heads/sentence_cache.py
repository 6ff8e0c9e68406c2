"""A cache of values that a head computes from each sentence's gold annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from spanwise.core.types import Sentence

Ints = npt.NDArray[np.int64]
T = TypeVar("T")
MAX_SENTENCES = 1 << 18


class SentenceCache(Generic[T]):
    """Calls ``compute`` once per sentence and caches the result.

    Sentences are compared by identity, because hashing their words at every step would cost as much
    as the saved work. The cache also stores the sentences, so that no identity is reused. Copies (for
    example in worker processes) start empty.

    >>> lengths = SentenceCache(lambda sentence: np.array([len(sentence.words)]))
    >>> sentence = Sentence("s1", ("two", "words"))
    >>> lengths(sentence), lengths(sentence) is lengths(sentence)
    (array([2]), True)
    """

    def __init__(self, compute: Callable[[Sentence], T]) -> None:
        self.compute = compute
        self._cached: dict[int, tuple[Sentence, T]] = {}

    def __call__(self, sentence: Sentence) -> T:
        entry = self._cached.get(id(sentence))
        if entry is None:
            if len(self._cached) >= MAX_SENTENCES:
                self._cached.clear()
            entry = self._cached[id(sentence)] = (sentence, self.compute(sentence))
        return entry[1]

    def __getstate__(self) -> dict[str, object]:
        return {"compute": self.compute, "_cached": {}}
