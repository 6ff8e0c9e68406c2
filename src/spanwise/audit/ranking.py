"""Scores of candidates: how much likelier each is if gold is wrong than if the models are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spanwise.audit.candidates import KINDS, Candidate, Key
from spanwise.audit.logistic import fit_logistic
from spanwise.audit.simulation import simulate_errors
from spanwise.audit.strings import StringCounts
from spanwise.audit.view import AuditView

ERROR_RATE = 0.01  # assumed number of errors of each kind per gold entity
MIN_SIMULATED = 20  # with fewer simulated or real candidates of a kind, its weights are not fitted

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate of a sentence, its score, and how often its words are annotated elsewhere."""

    sentence: int
    candidate: Candidate
    score: float
    details: Mapping[str, Any]


def rank_candidates(view: AuditView, seed: int = 1) -> list[RankedCandidate]:
    """Score all disagreements between gold and the models; the surest come first.

    For each kind of error, simulated errors show how certain the models are, and how consistent the
    corpus is, where gold is wrong. A logistic regression separates them from the disagreements that the
    corpus really has. Its odds are the ratio of the two densities. With ``ERROR_RATE`` as the prior they
    give the score, which is between 0 and 1 and comparable between kinds.
    """
    simulated = list(simulate_errors(view, seed)) if view.entity_count else []
    needed = {
        view.words(index, key) for index, candidate in (*view.candidates, *simulated)
        for key in (candidate.gold, candidate.suggestion) if key is not None
    }  # fmt: skip
    strings = Features(view, StringCounts(view.sentences, needed))
    ranked = []
    for kind in KINDS:
        found = [(index, candidate) for index, candidate in view.candidates if candidate.kind == kind]
        errors = [(index, candidate) for index, candidate in simulated if candidate.kind == kind]
        if not found:
            continue
        ratios = _log_ratios(strings.matrix(found), strings.matrix(errors))
        scores = 1 / (1 + np.exp(-(ratios + np.log(ERROR_RATE * view.entity_count / len(found)))))
        for (index, candidate), score in zip(found, scores, strict=True):
            ranked.append(RankedCandidate(index, candidate, float(score), strings.details(index, candidate)))
    return sorted(ranked, key=_order)


def _order(item: RankedCandidate) -> tuple[float, int, Key]:
    key = item.candidate.suggestion or item.candidate.gold
    assert key is not None
    return -item.score, item.sentence, key


def _log_ratios(found: Floats, simulated: Floats) -> Floats:
    """The log-odds that each row of ``found`` is a simulated error, if both are equally many."""
    if min(len(found), len(simulated)) < MIN_SIMULATED:
        return found.sum(1)
    rows = np.concatenate((found, simulated))
    center, scale = rows.mean(0), rows.std(0) + 1e-6
    targets = np.repeat((0.0, 1.0), (len(found), len(simulated)))
    weights = np.where(targets > 0, 0.5 / len(simulated), 0.5 / len(found)) * len(rows)
    coefficients = fit_logistic((rows - center) / scale, targets, weights)
    return coefficients[0] + (found - center) / scale @ coefficients[1:]


class Features:
    """Numbers that describe a candidate; each rises with the likelihood that gold is wrong."""

    def __init__(self, view: AuditView, strings: StringCounts) -> None:
        self.view, self.strings = view, strings

    def matrix(self, candidates: Sequence[tuple[int, Candidate]]) -> Floats:
        rows = [self.row(index, candidate) for index, candidate in candidates]
        return np.array(rows, np.float64) if rows else np.zeros((0, 1))

    def row(self, index: int, candidate: Candidate) -> list[float]:
        row = []
        if candidate.suggestion is not None:
            row += [candidate.suggestion_odds, self.support(index, candidate.suggestion)]
        if candidate.gold is not None:
            row += [-candidate.gold_odds, -self.support(index, candidate.gold)]
        return row

    def elsewhere(self, index: int, key: Key) -> tuple[int, int]:
        """How often the words of an entity have its type elsewhere, and how often they occur there."""
        words = self.view.words(index, key)
        annotated = self.strings.annotated[words][self.view.types[key[2]]] - (key in self.view.gold[index])
        return annotated, self.strings.occurrences[words] - 1

    def support(self, index: int, key: Key) -> float:
        """The log-odds that the words of an entity have its type elsewhere; 0 if they do not occur there."""
        annotated, occurrences = self.elsewhere(index, key)
        return float(np.log((annotated + 0.5) / (max(occurrences - annotated, 0) + 0.5)))

    def details(self, index: int, candidate: Candidate) -> dict[str, Any]:
        """What the score of a candidate rests on, for people."""
        details: dict[str, Any] = {}
        for name, key, odds in (
            ("gold", candidate.gold, candidate.gold_odds),
            ("suggested", candidate.suggestion, candidate.suggestion_odds),
        ):
            if key is not None:
                details[f"{name}_probability"] = round(1 / (1 + math.exp(-odds)), 4)
        key = candidate.suggestion or candidate.gold
        assert key is not None
        details["annotated_elsewhere"], details["occurs_elsewhere"] = self.elsewhere(index, key)
        return details
