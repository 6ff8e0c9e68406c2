"""Scores of candidates: the probability that gold is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spanwise.audit.candidates import KINDS, Candidate, Key
from spanwise.audit.features import Features
from spanwise.audit.mixture import log_odds_of_errors
from spanwise.audit.simulation import simulate_errors
from spanwise.audit.view import AuditView

ERROR_RATE = 0.01  # expected number of errors of each kind per gold entity, before the corpus is seen


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate of a sentence, the log-odds that gold is wrong, and what they rest on."""

    sentence: int
    candidate: Candidate
    log_odds: float
    details: Mapping[str, Any]


def rank_candidates(view: AuditView, seed: int = 1) -> list[RankedCandidate]:
    """Score all disagreements between gold and the models; the most certain come first.

    The disagreements of a kind are a mixture: errors of gold, which look like simulated ones, and errors
    of the models. ``log_odds_of_errors`` separates them. All else equal, the surer models are, the higher
    is the score.
    """
    simulated = list(simulate_errors(view, seed)) if view.entity_count else []
    features = Features(view, [*view.candidates, *simulated])
    ranked = []
    for kind in KINDS:
        candidates = [item for item in view.candidates if item[1].kind == kind]
        errors = [item for item in simulated if item[1].kind == kind]
        if not candidates:
            continue
        rows, examples, expected = features.matrix(candidates), features.matrix(errors), ERROR_RATE * view.entity_count
        values = log_odds_of_errors(rows, examples, expected, features.is_certainty(kind))
        for (index, candidate), value in zip(candidates, values, strict=True):
            ranked.append(RankedCandidate(index, candidate, float(value), features.details(index, candidate)))
    return sorted(ranked, key=_order)


def _order(item: RankedCandidate) -> tuple[float, int, Key]:
    key = item.candidate.suggestion or item.candidate.gold
    assert key is not None
    return -item.log_odds, item.sentence, key
