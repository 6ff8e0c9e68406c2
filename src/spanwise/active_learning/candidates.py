"""Candidates for annotation: sentences or documents of a pool, and how much their words would teach."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from spanwise.core.types import Sentence


class Feature(NamedTuple):
    """A word in lower case, and how much it matters: 1 unless it is part of a type that is wanted."""

    word: str
    weight: float = 1.0


@dataclass(frozen=True)
class Candidate:
    """A sentence, or the sentences of a document.

    ``masses`` has for each feature how much an annotation of its occurrences would teach. ``number``
    is the position in the pool.
    """

    number: int
    sentences: tuple[Sentence, ...]
    masses: Mapping[Feature, float]

    @property
    def score(self) -> float:
        return sum(feature.weight * mass for feature, mass in self.masses.items())

    @property
    def words(self) -> int:
        return sum(len(sentence.words) for sentence in self.sentences)


class Shortlist:
    """The candidates with the highest priorities, at most ``size`` of them.

    >>> shortlist = Shortlist(2)
    >>> for number, priority in enumerate((0.1, 0.9, 0.5)):
    ...     shortlist.add(Candidate(number, (), {}), (priority,))
    >>> [candidate.number for candidate in shortlist.candidates]
    [1, 2]
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._heap: list[tuple[tuple[float, ...], int, Candidate]] = []

    def add(self, candidate: Candidate, priority: tuple[float, ...]) -> None:
        row = (priority, -candidate.number, candidate)
        if len(self._heap) < self.size:
            heapq.heappush(self._heap, row)
        else:
            heapq.heappushpop(self._heap, row)

    @property
    def candidates(self) -> list[Candidate]:
        """The highest priority first."""
        return [candidate for _, _, candidate in sorted(self._heap, reverse=True)]


def add_masses(parts: Iterable[Mapping[Feature, float]]) -> dict[Feature, float]:
    """The sum of masses by feature."""
    total: dict[Feature, float] = {}
    for masses in parts:
        for feature, mass in masses.items():
            total[feature] = total.get(feature, 0.0) + mass
    return total
