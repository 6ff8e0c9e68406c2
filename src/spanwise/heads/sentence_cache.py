"""Caches of values that a head computes from each sentence's gold annotations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from spanwise.core.types import Sentence

Ints = npt.NDArray[np.int64]
T = TypeVar("T")
MAX_SENTENCES = 1 << 18
CHUNK = 4096  # sentences whose values are computed at once; bounds the memory


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


class BatchCache(Generic[T]):
    """The same for values that many sentences get at once: ``compute`` is called with those that have none.

    >>> lengths = BatchCache(lambda sentences: [len(sentence.words) for sentence in sentences])
    >>> lengths([Sentence("s1", ("two", "words")), Sentence("s2", ("one",))])
    [2, 1]
    """

    def __init__(self, compute: Callable[[Sequence[Sentence]], Sequence[T]]) -> None:
        self.compute = compute
        self._cached: dict[int, tuple[Sentence, T]] = {}

    def __call__(self, sentences: Sequence[Sentence]) -> list[T]:
        missing = {id(sentence): sentence for sentence in sentences if id(sentence) not in self._cached}
        if missing and len(self._cached) + len(missing) > MAX_SENTENCES:
            self._cached.clear()
            missing = {id(sentence): sentence for sentence in sentences}
        remaining = iter(missing.values())
        while chunk := list(islice(remaining, CHUNK)):
            for sentence, value in zip(chunk, self.compute(chunk), strict=True):
                self._cached[id(sentence)] = sentence, value
        return [self._cached[id(sentence)][1] for sentence in sentences]

    def __getstate__(self) -> dict[str, object]:
        return {"compute": self.compute, "_cached": {}}
