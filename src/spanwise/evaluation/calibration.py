"""Calibration of prediction scores, and the threshold with the best F1.

A threshold only removes predictions. To get entities that the system itself drops, let it propose
as many candidates as possible; ``--find-threshold`` does this for heads with a threshold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.decoding.thresholds import apply_threshold, best_threshold
from spanwise.evaluation.buckets import quantile_cuts
from spanwise.evaluation.matching import best_scores
from spanwise.evaluation.pairing import pair
from spanwise.evaluation.relations import gold_relations, relation_scores
from spanwise.evaluation.scores import EntityItem, Score, Tally, entity_items, ratio

BINS = 10
MAX_POINTS = 200  # of the curve

ScoredPredictions = Sequence[tuple[float, bool]]  # the score of each predicted entity and whether it is correct, sorted


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions with scores above ``low`` and at most ``high``; the first bin includes 0."""

    low: float
    high: float
    count: int
    correct: int
    mean_score: float | None

    @property
    def precision(self) -> float | None:
        """Share of correct predictions; None for an empty bin."""
        return self.correct / self.count if self.count else None

    def to_json(self) -> dict[str, Any]:
        return {
            "low": self.low,
            "high": self.high,
            "count": self.count,
            "correct": self.correct,
            "mean_score": self.mean_score,
            "precision": self.precision,
        }


@dataclass(frozen=True, slots=True)
class ThresholdScore:
    """The strict score of the predictions whose own score is at least ``threshold``."""

    threshold: float
    score: Score

    def to_json(self) -> dict[str, Any]:
        return {"threshold": self.threshold, **self.score.to_json()}


@dataclass(frozen=True)
class Calibration:
    """Reliability of scores in bins of equal width and of equal count, and scores by threshold.

    ``curve`` is sorted from the highest threshold to the lowest; the last point keeps all
    predictions, like ``unfiltered``. ``best`` has the highest micro F1 (None if no prediction is
    correct). ``types`` holds the best threshold of each gold type by its own F1, the most frequent
    type first.
    """

    equal_width: tuple[Bin, ...]
    equal_count: tuple[Bin, ...]
    curve: tuple[ThresholdScore, ...]
    unfiltered: Score
    best: ThresholdScore | None
    types: Mapping[str, ThresholdScore | None]

    @property
    def expected_error(self) -> float:
        """Expected calibration error over bins of equal width (Guo et al. 2017)."""
        return expected_error(self.equal_width)

    @property
    def expected_error_equal_count(self) -> float:
        """Expected calibration error over bins of equal count, none of which is nearly empty."""
        return expected_error(self.equal_count)

    def to_json(self) -> dict[str, Any]:
        return {
            "expected_error": self.expected_error,
            "expected_error_equal_count": self.expected_error_equal_count,
            "equal_width": [bin.to_json() for bin in self.equal_width],
            "equal_count": [bin.to_json() for bin in self.equal_count],
            "curve": [point.to_json() for point in self.curve],
            "unfiltered": self.unfiltered.to_json(),
            "best": None if self.best is None else self.best.to_json(),
            "types": {type: None if point is None else point.to_json() for type, point in self.types.items()},
        }


def calibration(
    gold: Iterable[Sentence], predicted: Iterable[Sentence], bins: int = BINS, *, min_threshold: float | None = None
) -> Calibration:  # fmt: skip
    """Compare the scores of predicted entities with their precision; sentences are paired by ``pair``.

    Every predicted entity must have a score between 0 and 1. If the system proposed candidates only
    above some score, pass it as ``min_threshold``: no lower threshold is considered.

    >>> from spanwise.core.types import Entity
    >>> words = ("Oslo", "and", "York")
    >>> gold = Sentence("s1", words, (Entity("Place", ((0, 1),)),))
    >>> predicted = Sentence("s1", words, (Entity("Place", ((0, 1),), 0.8), Entity("Place", ((2, 3),), 0.4)))
    >>> result = calibration([gold], [predicted])
    >>> result.best, round(result.expected_error, 2)
    (ThresholdScore(threshold=0.6, score=Score(support=1, predicted=1, correct=1)), 0.3)
    """
    if bins < 1:
        raise SpanwiseError(f"expected at least one bin, found {bins}")
    support, scored = _scores_by_type(gold, predicted)
    if not scored:
        raise SpanwiseError("there are no predicted entities to calibrate")
    return _calibration(support, scored, bins, min_threshold)


def relation_calibration(gold: Iterable[Sentence], predicted: Iterable[Sentence], bins: int = BINS) -> Calibration:
    """Compare the scores of predicted relations with their precision: type and both entities must be correct.

    >>> from dataclasses import replace
    >>> from spanwise.core.types import Entity, Relation
    >>> places = Entity("Place", ((0, 1),)), Entity("Place", ((2, 3),))
    >>> gold = Sentence("s1", ("Oslo", "and", "York"), places, (Relation("near", 0, 1),))
    >>> predicted = replace(gold, relations=(Relation("near", 0, 1, 0.8), Relation("near", 1, 0, 0.4)))
    >>> relation_calibration([gold], [predicted]).best
    ThresholdScore(threshold=0.6, score=Score(support=1, predicted=1, correct=1))
    """
    support = Counter[str]()
    scored: dict[str, list[tuple[float, bool]]] = {}
    for sentence_pair in pair(gold, predicted).pairs:
        gold_items = gold_relations(sentence_pair.gold)
        support.update(str(item[0]) for item in gold_items)
        for item, score in relation_scores(sentence_pair.predicted).items():
            scored.setdefault(str(item[0]), []).append((score, item in gold_items))
    if not scored:
        raise SpanwiseError("there are no predicted relations to calibrate")
    return _calibration(support, scored, bins, None)


def _calibration(
    support: Counter[str], scored: Mapping[str, list[tuple[float, bool]]], bins: int, min_threshold: float | None
) -> Calibration:
    rows = sorted(row for type_rows in scored.values() for row in type_rows)
    total = support.total()
    return Calibration(
        equal_width=tuple(_bins(rows, _equal_widths(bins))),
        equal_count=tuple(_bins(rows, [*quantile_cuts((score for score, _ in rows), bins), 1.0])),
        curve=tuple(_curve(rows, total)),
        unfiltered=_score_at(0.0, rows, total).score,
        best=_best(rows, total, min_threshold),
        types={
            type: _best(scored.get(type, []), support[type], min_threshold)
            for type in sorted(support, key=lambda name: (-support[name], name))
        },
    )


def scored_predictions(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> list[tuple[float, bool]]:
    """The score of each distinct predicted entity and whether it is correct, from the lowest score to the highest."""
    _, scored = _scores_by_type(gold, predicted)
    return sorted(row for type_rows in scored.values() for row in type_rows)


def score_at_threshold(gold: Iterable[Sentence], predicted: Iterable[Sentence], threshold: float) -> ThresholdScore:
    """Score the predictions after dropping those below a threshold."""
    tally = Tally()
    for sentence_pair in pair(gold, apply_threshold(predicted, threshold)).pairs:
        tally.add(entity_items(sentence_pair.gold), entity_items(sentence_pair.predicted))
    return ThresholdScore(threshold, tally.scores.micro)


@dataclass(frozen=True)
class CalibrationErrors:
    """The expected calibration error of predictions before and after calibration, and how many they are."""

    before: float
    after: float
    predictions: int

    @property
    def line(self) -> str:
        """The errors as text."""
        return f"expected calibration error of scores: {self.after:.3f}, without calibration {self.before:.3f}"

    def to_json(self) -> dict[str, Any]:
        return {"before": round(self.before, 6), "after": round(self.after, 6), "predictions": self.predictions}


def calibration_errors(
    gold: Sequence[Sentence], before: Sequence[Sentence], after: Sequence[Sentence]
) -> CalibrationErrors | None:  # fmt: skip
    """Compare predictions before and after the calibration of their scores; None if there are none."""
    try:
        return compare_errors(scored_predictions(gold, before), scored_predictions(gold, after))
    except SpanwiseError:  # some predictions have no score
        return None


def compare_errors(before: ScoredPredictions, after: ScoredPredictions) -> CalibrationErrors | None:
    """Compare the same ``scored_predictions`` before and after the calibration of their scores; None if there are none.

    >>> compare_errors([(0.9, False), (0.9, True)], [(0.6, False), (0.6, True)]).line
    'expected calibration error of scores: 0.100, without calibration 0.400'
    """
    if not before or not after:
        return None
    errors = [expected_error(tuple(_bins(rows, _equal_widths(BINS)))) for rows in (before, after)]
    return CalibrationErrors(errors[0], errors[1], len(before))


def expected_error(bins: Sequence[Bin]) -> float:
    """Return the mean distance between score and precision over the bins, weighted by their counts."""
    distances = (abs(bin.count * (bin.mean_score or 0.0) - bin.correct) for bin in bins)
    return ratio(sum(distances), sum(bin.count for bin in bins))


def _scores_by_type(
    gold: Iterable[Sentence], predicted: Iterable[Sentence]
) -> tuple[Counter[str], dict[str, list[tuple[float, bool]]]]:
    """The number of gold entities of each type, and the scores of the predicted ones and whether they are correct."""
    support = Counter[str]()
    scored: dict[str, list[tuple[float, bool]]] = {}
    for sentence_pair in pair(gold, predicted).pairs:
        gold_items = entity_items(sentence_pair.gold)
        support.update(type for type, _ in gold_items)
        for item, score in _checked_scores(sentence_pair.predicted).items():
            scored.setdefault(item[0], []).append((score, item in gold_items))
    return support, scored


def _checked_scores(sentence: Sentence | None) -> dict[EntityItem, float]:
    """Return the score of each distinct entity, after checking that all have one."""
    for entity in sentence.entities if sentence is not None else ():
        if entity.score is None:
            raise SpanwiseError("some predicted entities have no score; calibration and thresholds need the scores of all")
        if not 0 <= entity.score <= 1:
            raise SpanwiseError(f"expected scores between 0 and 1, found a predicted entity with the score {entity.score}")
    return best_scores(sentence)


def _equal_widths(bins: int) -> list[float]:
    """The upper limits of bins of equal width."""
    return [(index + 1) / bins for index in range(bins)]


def _bins(rows: Sequence[tuple[float, bool]], limits: Sequence[float]) -> Iterable[Bin]:
    low, start = 0.0, 0
    for high in limits:
        end = start
        while end < len(rows) and rows[end][0] <= high:
            end += 1
        inside = rows[start:end]
        mean = sum(score for score, _ in inside) / len(inside) if inside else None
        yield Bin(low, high, len(inside), sum(is_correct for _, is_correct in inside), mean)
        low, start = high, end


def _score_at(threshold: float, rows: Sequence[tuple[float, bool]], support: int) -> ThresholdScore:
    kept = [is_correct for score, is_correct in rows if score >= threshold]
    return ThresholdScore(threshold, Score(support, len(kept), sum(kept)))


def _best(rows: Sequence[tuple[float, bool]], support: int, min_threshold: float | None) -> ThresholdScore | None:
    threshold = best_threshold(rows, support, min_threshold)
    return None if threshold is None else _score_at(threshold, rows, support)


def _curve(rows: Sequence[tuple[float, bool]], support: int) -> Iterable[ThresholdScore]:
    """Score at each distinct score; if there are too many, at every n-th of them and at the lowest."""
    points, kept, correct = [], 0, 0
    for (score, is_correct), following in pairwise([*reversed(rows), (-1.0, False)]):
        kept, correct = kept + 1, correct + is_correct
        if following[0] < score:
            points.append(ThresholdScore(score, Score(support, kept, correct)))
    step = max(1, -(-len(points) // MAX_POINTS))
    return reversed(points[::-1][::step])
