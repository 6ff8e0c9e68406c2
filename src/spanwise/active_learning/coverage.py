"""Choose candidates that together cover as much as possible, instead of the same thing many times.

The value of a set of candidates is the sum over all words of weight * (1 - exp(-saturation * mass)),
where mass is the total mass of the word in the chosen candidates: the first occurrences of an uncertain
word are worth most, and a similar sentence is worth less. The function is submodular, so choosing greedily
reaches at least 1 - 1/e of the best value (filtered active submodular selection, Wei, Iyer and Bilmes 2015).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import exp

from spanwise.active_learning.candidates import Candidate, Feature


def choose_by_coverage(
    candidates: Sequence[Candidate], count: int, *, saturation: float = 1.0, per_word: bool = False
) -> list[Candidate]:  # fmt: skip
    """Choose ``count`` candidates greedily, the most valuable first.

    With a low ``saturation``, the sum of the masses matters most; with a high one, the number of
    different words. ``per_word`` divides the value of a candidate by its length.

    >>> a, b, c = map(Feature, "abc")
    >>> rows = [{a: 2.0, b: 0.5}, {a: 2.0, b: 0.4}, {c: 1.0}]
    >>> candidates = [Candidate(number, (), masses) for number, masses in enumerate(rows)]
    >>> [candidate.number for candidate in choose_by_coverage(candidates, 2)]
    [0, 2]
    """
    total: dict[Feature, float] = {}

    def value(candidate: Candidate) -> float:
        # exp(-total) - exp(-total - mass) for each word, with saturation
        value = sum(
            feature.weight * exp(-saturation * total.get(feature, 0.0)) * (1 - exp(-saturation * mass))
            for feature, mass in candidate.masses.items()
        )
        return value / max(1, candidate.words) if per_word else value

    # Values only fall while candidates are chosen: one whose updated value is still the highest is the best of all.
    heap = [(-value(candidate), order, candidate) for order, candidate in enumerate(candidates)]
    heapq.heapify(heap)
    chosen: list[Candidate] = []
    while heap and len(chosen) < count:
        _, order, candidate = heapq.heappop(heap)
        row = (-value(candidate), order, candidate)
        if heap and row[:2] > heap[0][:2]:
            heapq.heappush(heap, row)
            continue
        chosen.append(candidate)
        for feature, mass in candidate.masses.items():
            total[feature] = total.get(feature, 0.0) + mass
    return chosen
