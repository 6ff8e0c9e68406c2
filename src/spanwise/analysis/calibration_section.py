"""Calibration of any system's prediction scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spanwise.analysis.figures.reliability import precision_recall_figure, reliability_figure
from spanwise.analysis.section import RATES, SCORE_COLUMNS, Plot, Section, Table
from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.percentages import percent
from spanwise.core.types import Sentence
from spanwise.evaluation.calibration import Bin, Calibration, ThresholdScore, calibration, relation_calibration

BIN_COLUMNS = ("above", "up_to", "predictions", "correct", "mean_score", "precision")
PLOT = "precision_recall"


def calibration_section(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> Section:
    """Draw a reliability diagram and precision and recall by threshold; only text if predictions have no scores."""
    title = "Calibration"
    try:
        result = calibration(gold, predicted)
    except SpanwiseError as error:
        return Section("calibration", title, f"Calibration is not available: {error}.")
    tables = {
        "equal_width": _bin_table(result.equal_width, "Bins of equal width"),
        "equal_count": _bin_table(result.equal_count, "Bins of equal count"),
        "thresholds": _curve_table(result),
        "best_by_type": Table(
            ("type", "threshold", *SCORE_COLUMNS),
            tuple((type, *(_row(point) if point else (None,) * 7)) for type, point in result.types.items()),
            "Best threshold of each type",
            percentages=RATES,
        ),
    }
    figures = {
        "reliability": Plot(
            lambda: reliability_figure(result),
            "Reliability diagram. Top: precision of the predictions in each range of scores (bars) and in bins of equal count "
            "(line). Scores are calibrated where both follow the dashed diagonal; they are too high below it. Bottom: number "
            "of predictions in each range.",
        ),
        PLOT: _curve_plot(result),
    }
    return Section("calibration", title, _text(result), tables, figures)


def relations_section(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> Section | None:
    """Draw precision and recall of relations by threshold; None if no relation is predicted or some have no scores."""
    try:
        result = relation_calibration(gold, predicted)
    except SpanwiseError:
        return None
    text = (
        "A relation is correct if its type and both entities are. Relations below the threshold of the model are not "
        "predicted: lower it for a longer curve, for example with --threshold relation:NAME=0.05."
    )
    return Section(
        "relations", "Relations by threshold", text, {"thresholds": _curve_table(result)}, {PLOT: _curve_plot(result)}
    )


def _curve_table(result: Calibration) -> Table:
    rows = tuple(_row(point) for point in result.curve)
    return Table(("threshold", *SCORE_COLUMNS), rows, "Scores by threshold", percentages=RATES)


def _curve_plot(result: Calibration) -> Plot:
    return Plot(
        lambda: precision_recall_figure(result),
        "Left: precision against recall as the threshold on the score varies. Right: precision, recall and F1 by "
        "threshold; the dashed line marks the threshold with the best F1.",
    )


def _row(point: ThresholdScore) -> tuple[float, ...]:
    score = point.score
    return point.threshold, score.precision, score.recall, score.f1, score.support, score.predicted, score.correct


def _bin_table(bins: Iterable[Bin], title: str) -> Table:
    rows = ((bin.low, bin.high, bin.count, bin.correct, bin.mean_score, bin.precision) for bin in bins)
    return Table(BIN_COLUMNS, tuple(rows), title)  # precision as a fraction, to compare it with the mean score


def _text(result: Calibration) -> str:
    count = sum(bin.count for bin in result.equal_width)
    mean_score = sum(bin.count * (bin.mean_score or 0.0) for bin in result.equal_width) / count
    precision = result.unfiltered.precision
    gap = f"{abs(mean_score - precision):.3f} too {'high' if mean_score > precision else 'low'}"
    sentences = [
        f"The mean score of {counted(count, 'prediction')} is {mean_score:.3f}, and the precision is {precision:.3f}: on "
        f"average, scores are {gap}.",
        f"The expected calibration error is {result.expected_error:.3f} over bins of equal width and "
        f"{result.expected_error_equal_count:.3f} over bins of equal count.",
    ]
    if result.best is not None:
        sentences.append(
            f"On this data the threshold {result.best.threshold:.3f} gives the best F1: {percent(result.best.score.f1)}, "
            f"compared with {percent(result.unfiltered.f1)} of all predictions. A model predicts nothing below its own "
            "threshold: spanwise evaluate --find-threshold also tries lower ones. Choose thresholds on dev, never on test."
        )
    return " ".join(sentences)
