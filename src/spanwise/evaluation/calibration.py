"""Whether scores can be taken at their word, and above which score predictions are best kept.

What a system never proposed cannot be found by lowering a threshold: have it propose as much as it can (``--find-threshold``
does, where a model's head has a threshold of its own).
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
from spanwise.evaluation.buckets import equal_cuts
from spanwise.evaluation.judging import best_scores
from spanwise.evaluation.pairing import pair
from spanwise.evaluation.scores import EntityItem, Score, Tally, entity_items, ratio

BINS = 10
POINTS = 200  # of the curve, at most


@dataclass(frozen=True, slots=True)
class Bin:
    """The ``count`` predictions whose scores lie above ``low`` (or are 0) and up to ``high``; ``correct`` of them are right."""

    low: float
    high: float
    count: int
    correct: int
    mean_score: float | None

    @property
    def share_correct(self) -> float | None:
        """None where the bin is empty."""
        return self.correct / self.count if self.count else None

    def to_json(self) -> dict[str, Any]:
        return {
            "low": self.low,
            "high": self.high,
            "count": self.count,
            "correct": self.correct,
            "mean_score": self.mean_score,
            "share_correct": self.share_correct,
        }


@dataclass(frozen=True, slots=True)
class AtThreshold:
    """The strict score of the predictions whose own score is ``threshold`` or more."""

    threshold: float
    score: Score

    def to_json(self) -> dict[str, Any]:
        return {"threshold": self.threshold, **self.score.to_json()}


@dataclass(frozen=True)
class Calibration:
    """The reliability of scores in bins of equal width and of equal count, and what thresholds do.

    ``curve`` goes from the highest threshold, which keeps least, to the lowest, which keeps all, as ``everything`` does.
    ``best`` has the highest micro F1 (None where nothing is right); ``types`` has for each type of gold, those with most
    support first, the threshold that is best for its own F1.
    """

    equal_width: tuple[Bin, ...]
    equal_count: tuple[Bin, ...]
    curve: tuple[AtThreshold, ...]
    everything: Score
    best: AtThreshold | None
    types: Mapping[str, AtThreshold | None]

    @property
    def expected_error(self) -> float:
        """The expected calibration error over the bins of equal width (Guo et al. 2017): the mean distance between the mean
        score of a bin and the share of it that is right, each bin weighed by its count."""
        return expected_error(self.equal_width)

    @property
    def expected_error_equal_count(self) -> float:
        """The same over the bins of equal count, of which none is nearly empty."""
        return expected_error(self.equal_count)

    def to_json(self) -> dict[str, Any]:
        return {
            "expected_error": self.expected_error,
            "expected_error_equal_count": self.expected_error_equal_count,
            "equal_width": [one.to_json() for one in self.equal_width],
            "equal_count": [one.to_json() for one in self.equal_count],
            "curve": [point.to_json() for point in self.curve],
            "everything": self.everything.to_json(),
            "best": None if self.best is None else self.best.to_json(),
            "types": {type: None if point is None else point.to_json() for type, point in self.types.items()},
        }


def calibration(
    gold: Iterable[Sentence], predicted: Iterable[Sentence], bins: int = BINS, *, lowest: float | None = None
) -> Calibration:  # fmt: skip
    """Compare the scores of predicted sentences with how often they are right; see ``pair`` for which belongs to which.

    Every predicted entity must have a score between 0 and 1. ``lowest`` is the score from which on they were proposed at all:
    no threshold is looked for below.

    >>> from spanwise.core.types import Entity
    >>> words = ("Oslo", "and", "York")
    >>> right = Sentence("s1", words, (Entity("Place", ((0, 1),)),))
    >>> found = Sentence("s1", words, (Entity("Place", ((0, 1),), 0.8), Entity("Place", ((2, 3),), 0.4)))
    >>> result = calibration([right], [found])
    >>> result.best, round(result.expected_error, 2)
    (AtThreshold(threshold=0.6, score=Score(support=1, predicted=1, correct=1)), 0.3)
    """
    if bins < 1:
        raise SpanwiseError(f"expected one bin or more, not {bins}")
    support = Counter[str]()
    scored: dict[str, list[tuple[float, bool]]] = {}
    for both in pair(gold, predicted).pairs:
        right = entity_items(both.gold)
        support.update(type for type, _ in right)
        for item, score in _checked(both.predicted).items():
            scored.setdefault(item[0], []).append((score, item in right))
    rows = sorted(row for own in scored.values() for row in own)
    if not rows:
        raise SpanwiseError("there are no predicted entities whose scores could be looked at")
    total = support.total()
    return Calibration(
        equal_width=tuple(_bins(rows, [(number + 1) / bins for number in range(bins)])),
        equal_count=tuple(_bins(rows, [*equal_cuts((score for score, _ in rows), bins), 1.0])),
        curve=tuple(_curve(rows, total)),
        everything=_at(0.0, rows, total).score,
        best=_best(rows, total, lowest),
        types={
            type: _best(scored.get(type, []), support[type], lowest) for type in sorted(support, key=lambda t: (-support[t], t))
        },
    )


def at_threshold(gold: Iterable[Sentence], predicted: Iterable[Sentence], threshold: float) -> AtThreshold:
    """The score of what is left when predictions below a threshold are dropped."""
    tally = Tally()
    for both in pair(gold, apply_threshold(predicted, threshold)).pairs:
        tally.add(entity_items(both.gold), entity_items(both.predicted))
    return AtThreshold(threshold, tally.scores.micro)


def expected_error(bins: Sequence[Bin]) -> float:
    """The mean distance between score and share of right ones, over all predictions in the bins."""
    distances = (abs(one.count * (one.mean_score or 0.0) - one.correct) for one in bins)
    return ratio(sum(distances), sum(one.count for one in bins))


def _checked(sentence: Sentence | None) -> dict[EntityItem, float]:
    """The score of each distinct entity of a sentence."""
    for entity in sentence.entities if sentence is not None else ():
        if entity.score is None:
            raise SpanwiseError("some predicted entities have no score, and nothing can be said of thresholds without")
        if not 0 <= entity.score <= 1:
            raise SpanwiseError(f"the score of a predicted entity is {entity.score}, expected a number between 0 and 1")
    return best_scores(sentence)


def _bins(rows: Sequence[tuple[float, bool]], highs: Sequence[float]) -> Iterable[Bin]:
    low, at = 0.0, 0
    for high in highs:
        end = at
        while end < len(rows) and rows[end][0] <= high:
            end += 1
        own = rows[at:end]
        mean = sum(score for score, _ in own) / len(own) if own else None
        yield Bin(low, high, len(own), sum(is_right for _, is_right in own), mean)
        low, at = high, end


def _at(threshold: float, rows: Sequence[tuple[float, bool]], support: int) -> AtThreshold:
    kept = [is_right for score, is_right in rows if score >= threshold]
    return AtThreshold(threshold, Score(support, len(kept), sum(kept)))


def _best(rows: Sequence[tuple[float, bool]], support: int, lowest: float | None) -> AtThreshold | None:
    threshold = best_threshold(rows, support, lowest)
    return None if threshold is None else _at(threshold, rows, support)


def _curve(rows: Sequence[tuple[float, bool]], support: int) -> Iterable[AtThreshold]:
    """At each score that occurs, or at some of them, equally far apart in rank, the lowest among them."""
    points, kept, correct = [], 0, 0
    for (score, is_right), following in pairwise([*reversed(rows), (-1.0, False)]):
        kept, correct = kept + 1, correct + is_right
        if following[0] < score:
            points.append(AtThreshold(score, Score(support, kept, correct)))
    step = max(1, -(-len(points) // POINTS))
    return reversed(points[::-1][::step])
