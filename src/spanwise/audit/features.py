"""Features of a candidate: outputs of the models, and annotations of the same words elsewhere in the corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import exp, log, log1p
from typing import Any

import numpy as np
import numpy.typing as npt

from spanwise.audit.candidates import Candidate, Key
from spanwise.audit.strings import StringCounts, WordCounts
from spanwise.audit.view import AuditView

Floats = npt.NDArray[np.float64]
SUGGESTION_HINGES = (2.0, 5.0)  # log-odds of the models at which the slope may change
GOLD_HINGES = (3.0, 6.0)
SEGMENTS = 3


def _segments(value: float, hinges: tuple[float, float]) -> tuple[float, float, float]:
    """A value as a sum of three parts, so that its effect may have three slopes.

    >>> _segments(6.0, (2.0, 5.0)), _segments(-3.0, (2.0, 5.0))
    ((2.0, 3.0, 1.0), (-3.0, 0.0, 0.0))
    """
    low, high = hinges
    return min(value, low), min(max(value - low, 0.0), high - low), max(value - high, 0.0)


class Features:
    """Features of candidates. All counts are of other places: the candidate's own annotation is subtracted."""

    def __init__(self, view: AuditView, candidates: Iterable[tuple[int, Candidate]]) -> None:
        self.view = view
        keys = ((index, key) for index, c in candidates for key in (c.gold, c.suggestion) if key is not None)
        self.strings = StringCounts(view.sentences, {view.words(index, key) for index, key in keys})
        self.words = WordCounts(view.sentences)
        total = max(1, self.words.occurrences.total())
        self.inside_rate = (self.words.inside.total() + 1) / (total + 2)
        self.edge_rate = (self.words.first.total() + 1) / (total + 2)

    def matrix(self, candidates: Sequence[tuple[int, Candidate]]) -> Floats:
        """One row per candidate; candidates of one kind have the same columns."""
        rows = [list(self.row(index, candidate)) for index, candidate in candidates]
        return np.array(rows, np.float64) if rows else np.zeros((0, 0))

    def is_certainty(self, kind: str) -> npt.NDArray[np.bool_]:
        """Which columns of a kind are the certainty of the models, with which the score must not fall."""
        has_both = kind in ("type", "boundary")
        width = SEGMENTS + 13 + len(self.view.types)
        return np.arange(width * (1 + has_both)) % width < SEGMENTS

    def row(self, index: int, candidate: Candidate) -> Iterator[float]:
        for key, odds, hinges in (
            (candidate.suggestion, candidate.suggestion_odds, SUGGESTION_HINGES),
            (candidate.gold, -candidate.gold_odds, GOLD_HINGES),
        ):
            if key is not None:
                yield from _segments(odds, hinges)
                yield from self._string_features(index, key)
                yield from self._word_features(index, key)
                yield from self._shape_features(index, key)

    def elsewhere(self, index: int, key: Key) -> tuple[int, int]:
        """How often the words of an entity have its type elsewhere, and how often they occur there."""
        words = self.view.words(index, key)
        annotated = self.strings.annotated[words][self.view.types[key[2]]] - (key in self.view.gold[index])
        return annotated, self.strings.occurrences[words] - 1

    def _string_features(self, index: int, key: Key) -> Iterator[float]:
        annotated, occurrences = self.elsewhere(index, key)
        yield log((annotated + 0.5) / (max(occurrences - annotated, 0) + 0.5))
        yield log1p(occurrences)
        yield log1p(annotated)
        yield float(0 < occurrences == annotated)
        yield float(occurrences > 2 and annotated == 0)

    def _word_features(self, index: int, key: Key) -> Iterator[float]:
        """The least and the mean log-odds that its words are inside entities, and those of its edges to be edges."""
        start, end, _ = key
        words, gold, counts = self.view.sentences[index].words, self.view.gold[index], self.words
        inside = [
            self._log_odds(counts.inside, words[i], any(first <= i < last for first, last, _ in gold), self.inside_rate)
            for i in range(start, end)
        ]  # fmt: skip
        yield min(inside)
        yield sum(inside) / len(inside)
        yield self._log_odds(counts.first, words[start], any(first == start for first, _, _ in gold), self.edge_rate)
        yield self._log_odds(counts.last, words[end - 1], any(last == end for _, last, _ in gold), self.edge_rate)

    def _log_odds(self, counts: Counter[str], word: str, is_counted: bool, rate: float) -> float:
        """The log-odds of a word elsewhere, with one pseudo-occurrence at the mean rate."""
        count, occurrences = counts[word] - is_counted, self.words.occurrences[word] - 1
        return log((count + rate) / (max(occurrences - count, 0) + 1 - rate))

    def _shape_features(self, index: int, key: Key) -> Iterator[float]:
        words = self.view.words(index, key)
        yield from (float(key[2] == label) for label in range(len(self.view.types)))
        yield log(len(words))
        yield float(words[0][0].isupper())
        yield float(words[-1][0].isupper())
        yield float(any(character.isdigit() for word in words for character in word))

    def details(self, index: int, candidate: Candidate) -> dict[str, Any]:
        """The probabilities and counts that explain the score of a candidate to a reader."""
        details: dict[str, Any] = {}
        for name, key, odds in (
            ("gold", candidate.gold, candidate.gold_odds),
            ("suggested", candidate.suggestion, candidate.suggestion_odds),
        ):
            if key is not None:
                details[f"{name}_probability"] = round(1 / (1 + exp(-odds)), 4)
        key = candidate.suggestion or candidate.gold
        assert key is not None
        details["annotated_elsewhere"], details["occurs_elsewhere"] = self.elsewhere(index, key)
        return details
