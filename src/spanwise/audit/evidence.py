"""Outputs of the models of a cross-validation for each sentence: mean log-odds of spans and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from spanwise.audit.span_scores import NOT_PREDICTED, SpanScores

LIMIT = 12.0  # larger log-odds mean the same: the model is certain
UNSCORED = float(np.log(NOT_PREDICTED))  # log-odds of a span that a model did not store

#: Log-odds by start, end and index of the type.
SentenceOdds: TypeAlias = dict[tuple[int, int, int], float]


class Evidence:
    """Mean log-odds over the repetitions of a cross-validation, one sentence at a time.

    Each repetition has scores for every sentence, by a model that was not trained on it. A span that a
    repetition did not store has ``UNSCORED`` there.
    """

    def __init__(self, repetitions: Sequence[SpanScores], sentence_count: int) -> None:
        self._repetitions = [s._replace(log_odds=np.clip(s.log_odds, -LIMIT, LIMIT)) for s in repetitions]
        widths = [int((scores.end - scores.start).max(initial=0)) for scores in repetitions]
        self.max_width = max(widths, default=0)  # wider spans are not scored
        self._cuts = [np.searchsorted(scores.sentence, np.arange(sentence_count + 1)) for scores in repetitions]

    def sentence(self, index: int) -> SentenceOdds:
        """The mean log-odds of the stored spans of a sentence."""
        sums: dict[tuple[int, int, int], float] = {}
        for scores, cuts in zip(self._repetitions, self._cuts, strict=True):
            rows = slice(cuts[index], cuts[index + 1])
            columns = (scores.start, scores.end, scores.label, scores.log_odds)
            for start, end, label, value in zip(*(column[rows].tolist() for column in columns), strict=True):
                sums[start, end, label] = sums.get((start, end, label), 0.0) + value - UNSCORED
        return {key: UNSCORED + total / len(self._repetitions) for key, total in sums.items()}
