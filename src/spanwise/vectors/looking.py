"""Looking at word vectors: neighbours, analogies, and the nearest spellings of a word that has none."""

from __future__ import annotations

import difflib

import numpy as np

from spanwise.core.errors import SpanwiseError
from spanwise.vectors.store import Floats, Vectors

Neighbours = list[tuple[str, float]]


class Lookup:
    """Vectors by word, compared by the cosine of their angle.

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
        """The words nearest to a word, nearest first."""
        row = self._row(word)
        return self._nearest(self._units[row], count, {row})

    def analogies(self, a: str, b: str, c: str, count: int = 10) -> Neighbours:
        """The words that are to ``c`` what ``b`` is to ``a``, best first: those nearest to b - a + c, other than the three."""
        rows = [self._row(word) for word in (a, b, c)]
        wanted = self._units[rows[1]] - self._units[rows[0]] + self._units[rows[2]]
        return self._nearest(wanted / max(float(np.linalg.norm(wanted)), 1e-30), count, set(rows))

    def _nearest(self, wanted: Floats, count: int, without: set[int]) -> Neighbours:
        cosines = self._units @ wanted
        order = [row for row in np.argsort(-cosines, kind="stable")[: count + len(without)].tolist() if row not in without]
        return [(self.words[row], float(cosines[row])) for row in order[:count]]

    def _row(self, word: str) -> int:
        if word in self._rows:
            return self._rows[word]
        near = self._spellings(word)
        hint = f"; spelled nearly so: {', '.join(near)}" if near else ""
        raise SpanwiseError(f"no vector for {word!r} among {len(self.words):,} words{hint}")

    def _spellings(self, word: str) -> list[str]:
        """Known words that look like it, those that differ in case alone first."""
        small = word.lower()
        same = [known for known in self.words if known.lower() == small]
        # Comparing spellings is slow: only words of like length with an end in common are looked at.
        alike = [known for known in self.words if abs(len(known) - len(word)) < 4 and _shares_end(known.lower(), small)]
        return list(dict.fromkeys([*same, *difflib.get_close_matches(word, alike, n=5)]))[:5]


def _shares_end(known: str, word: str) -> bool:
    return known[:1] == word[:1] or known[-1:] == word[-1:]
