"""Whether scores mean what they say: from any system's predictions that have scores, without the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spanwise.analysis.figures.reliability import precision_recall_figure, reliability_figure
from spanwise.analysis.part import Part, Table
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.evaluation.calibration import AtThreshold, Bin, Calibration, calibration


def calibration_part(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> Part:
    """Reliability diagram and precision and recall over thresholds; a text alone where predictions have no scores."""
    title = "Calibration"
    try:
        found = calibration(gold, predicted)
    except SpanwiseError as error:
        return Part("calibration", title, f"No calibration here: {error}.")
    tables = {
        "reliability": _bins(found.equal_width),
        "reliability_equal_count": _bins(found.equal_count),
        "thresholds": Table(("threshold", *_SCORE), tuple(_at(point) for point in found.curve)),
        "best_by_type": Table(
            ("type", "threshold", *_SCORE),
            tuple((kind, *(_at(point) if point else (None,) * 7)) for kind, point in found.types.items()),
        ),
    }
    figures = {
        "reliability": lambda: reliability_figure(found),
        "precision_recall": lambda: precision_recall_figure(found),
    }
    return Part("calibration", title, _text(found), tables, figures)


_SCORE = ("precision", "recall", "f1", "support", "predicted", "correct")


def _at(point: AtThreshold) -> tuple[float, ...]:
    score = point.score
    return point.threshold, score.precision, score.recall, score.f1, score.support, score.predicted, score.correct


def _bins(bins: Iterable[Bin]) -> Table:
    rows = ((one.low, one.high, one.count, one.correct, one.mean_score, one.share_correct) for one in bins)
    return Table(("above", "up to", "predictions", "right", "mean score", "share right"), tuple(rows))


def _text(found: Calibration) -> str:
    kept = sum(one.count for one in found.equal_width)
    scores = sum(one.count * (one.mean_score or 0.0) for one in found.equal_width) / kept
    right = found.everything.precision
    gap = f"{abs(scores - right):.3f} too {'high' if scores > right else 'low'}"
    lines = [
        f"{kept:,} predictions have a mean score of {scores:.3f}, and {right:.3f} of them are right: "
        f"on the whole scores are {gap}. "
        f"The expected calibration error is {found.expected_error:.3f} over bins of equal width "
        f"and {found.expected_error_equal_count:.3f} over bins of equal count."
    ]
    if found.best is not None:
        best, every = found.best, found.everything
        lines.append(
            f"On this data F1 is best with a threshold of {best.threshold:.3f}: {best.score.f1:.4f}, "
            f"and {every.f1:.4f} without one. A threshold should be chosen on dev, never on test."
        )
    return " ".join(lines)
