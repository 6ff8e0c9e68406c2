"""Calibrated scores: a monotone map from the scores of a head to probabilities of being correct.

The map divides the log-odds of a score by a temperature and adds a bias (Platt scaling; with a bias
of 0, temperature scaling). It keeps the order of all scores, so it changes no prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import exp, log

from spanwise.core.annotations import trusted_entity
from spanwise.core.types import Entity, Sentence
from spanwise.decoding.thresholds import MinScore

DIGITS = 6  # of scores
HALF_STEP = 0.5 * 10**-DIGITS


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """The temperature and bias of a model's scores; by default, scores stay as they are.

    >>> scale = ScoreScale(temperature=2.0)
    >>> scale.calibrate(0.9), scale.invert(0.75)
    (0.75, 0.9)
    """

    temperature: float = 1.0
    bias: float = 0.0

    @property
    def is_identity(self) -> bool:
        return self.temperature == 1 and self.bias == 0

    def calibrate(self, score: float) -> float:
        """The calibrated value of a head's score, rounded like all scores; 0 and 1 are treated as the nearest scores."""
        return score if self.is_identity else round(_sigmoid(log_odds(score) / self.temperature + self.bias), DIGITS)

    def invert(self, score: float) -> float:
        """The head's score that has this calibrated value; 0 and 1 stay."""
        if self.is_identity or not 0 < score < 1:
            return score
        return round(_sigmoid((log_odds(score) - self.bias) * self.temperature), DIGITS)

    def lower_bound(self, threshold: float) -> float:
        """The head's score from which on calibrated scores, rounded, reach a threshold; 0, the default, stays.

        >>> scale = ScoreScale(temperature=1.7, bias=-0.4)
        >>> scale.lower_bound(scale.calibrate(0.61)) <= 0.61 < scale.lower_bound(scale.calibrate(0.61) + 1e-5)
        True
        """
        if self.is_identity or not 0 < threshold <= 1:
            return threshold
        bound = _sigmoid((log_odds(threshold - HALF_STEP) - self.bias) * self.temperature)
        return bound if bound <= 1 - HALF_STEP else 1 + HALF_STEP  # even a score of 1 may have a lower calibrated value

    def apply(self, sentence: Sentence) -> Sentence:
        """Calibrate the scores of the entities of a sentence; relations keep theirs."""
        return self._map_scores(sentence, self.calibrate)

    def undo(self, sentence: Sentence) -> Sentence:
        """Return a sentence with the scores of the head, up to rounding."""
        return self._map_scores(sentence, self.invert)

    def _map_scores(self, sentence: Sentence, function: Callable[[float], float]) -> Sentence:
        if self.is_identity or not sentence.entities:
            return sentence

        def changed(entity: Entity) -> Entity:
            if entity.score is None:
                return entity
            return trusted_entity(entity.type, entity.fragments, function(entity.score), entity.extra)

        entities = tuple(map(changed, sentence.entities))
        if sentence.links or sentence.annotated is not None:
            return replace(sentence, entities=entities)
        return sentence.with_predictions(entities, sentence.relations)

    def to_head(self, threshold: MinScore) -> MinScore:
        """Convert thresholds of the calibrated scores of entities to those of the head.

        >>> {type: round(score, 4) for type, score in ScoreScale(temperature=2.0).to_head({"Drug": 0.75}).items()}
        {'Drug': 0.9}
        """
        if isinstance(threshold, Mapping):
            return {type: self.lower_bound(value) for type, value in threshold.items()}
        return self.lower_bound(threshold)


def log_odds(score: float) -> float:
    """The log-odds of a score, which is rounded and therefore never closer to 0 and 1 than half a step.

    >>> log_odds(0.5), round(log_odds(1.0), 2)
    (0.0, 14.51)
    """
    score = min(max(score, HALF_STEP), 1 - HALF_STEP)
    return log(score / (1 - score))


def _sigmoid(value: float) -> float:
    return 1 / (1 + exp(-value)) if value >= 0 else exp(value) / (1 + exp(value))
