"""Nearest neighbours and analogies of word vectors."""

from __future__ import annotations

import difflib

import numpy as np

from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.vectors.store import Floats, Vectors

Neighbours = list[tuple[str, float]]


class Lookup:
    """Word vectors compared by cosine similarity.

    >>> table = np.array([[1, 0], [1, 1], [0, 1], [2, 3]], np.float32)
    >>> lookup = Lookup(Vectors(("king", "man", "woman", "queen"), table))
    >>> [word for word, _ in lookup.similar("woman", 2)]
    ['queen', 'man']
    """

    def __init__(self, vectors: Vectors) -> None:
        self.words = vectors.words
        self._rows = {word: row for row, word in enumerate(vectors.words)}
        norms = np.linalg.norm(vectors.table, axis=1, keepdims=True)
        self._units = vectors.table / np.maximum(norms, np.finfo(np.float32).tiny)

    def similar(self, word: str, count: int = 10) -> Neighbours:
        """Return the words nearest to a word, nearest first."""
        row = self._row(word)
        return self._nearest(self._units[row], count, {row})

    def analogies(self, a: str, b: str, c: str, count: int = 10) -> Neighbours:
        """Return the words that are to ``c`` as ``b`` is to ``a``: those nearest to b - a + c, except the three."""
        rows = [self._row(word) for word in (a, b, c)]
        query = self._units[rows[1]] - self._units[rows[0]] + self._units[rows[2]]
        return self._nearest(query / max(float(np.linalg.norm(query)), 1e-30), count, set(rows))

    def _nearest(self, query: Floats, count: int, excluded: set[int]) -> Neighbours:
        cosines = self._units @ query
        nearest = np.argsort(-cosines, kind="stable")[: count + len(excluded)].tolist()
        rows = [row for row in nearest if row not in excluded]
        return [(self.words[row], float(cosines[row])) for row in rows[:count]]

    def _row(self, word: str) -> int:
        if word in self._rows:
            return self._rows[word]
        close = self._similar_spellings(word)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise SpanwiseError(f"no vector for {word!r} among {counted(len(self.words), 'word')}{hint}")

    def _similar_spellings(self, word: str) -> list[str]:
        """Return known words with a similar spelling, first those that differ only in case."""
        lower = word.lower()
        same = [known for known in self.words if known.lower() == lower]
        # Comparing spellings is slow, so only words of similar length with the same first or last letter are compared.
        candidates = [k for k in self.words if abs(len(k) - len(word)) < 4 and _shares_first_or_last(k.lower(), lower)]
        return list(dict.fromkeys([*same, *difflib.get_close_matches(word, candidates, n=5)]))[:5]


def _shares_first_or_last(known: str, word: str) -> bool:
    return known[:1] == word[:1] or known[-1:] == word[-1:]
