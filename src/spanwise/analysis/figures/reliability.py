"""Reliability diagram, and precision and recall by threshold."""

from __future__ import annotations

from matplotlib.figure import Figure

from spanwise.analysis.figures.style import BETTER, GRID, INK, MUTED, WIDTH, WORSE, new_figure, styled
from spanwise.core.percentages import percent
from spanwise.evaluation.calibration import Calibration, ThresholdScore

SIZE = 4.4


@styled
def reliability_figure(calibration: Calibration) -> Figure:
    """Draw the precision of predictions by score (top), and their number (bottom)."""
    figure = new_figure(WIDTH, SIZE)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    bins = [bin for bin in calibration.equal_width if bin.count]
    for bin in bins:
        top.bar(
            bin.low,
            bin.precision or 0.0,
            bin.high - bin.low,
            align="edge",
            color="#b9d6ea",
            edgecolor=BETTER,
            linewidth=0.8,
        )
        bottom.bar(bin.low, bin.count, bin.high - bin.low, align="edge", color=GRID, edgecolor=MUTED, linewidth=0.8)
        bottom.annotate(
            f"{bin.count:,}", ((bin.low + bin.high) / 2, bin.count), xytext=(0, 2), textcoords="offset points", ha="center",
            va="bottom", size=7.5, color=INK,
        )  # fmt: skip
    top.plot([0, 1], [0, 1], color=MUTED, linestyle="--", linewidth=1, label="perfect calibration")
    means = [(bin.mean_score or 0.0, bin.precision or 0.0) for bin in calibration.equal_count if bin.count]
    top.plot(*zip(*means, strict=True), color=WORSE, marker="o", markersize=4, linewidth=1.2, label="bins of equal count")
    top.set_xlim(0, 1)
    top.set_ylim(0, 1.03)
    top.set_ylabel("precision")
    bottom.set_ylabel("predictions")
    bottom.set_xlabel("score")
    bottom.margins(y=0.3)
    figure.legend(loc="outside upper left", ncols=2)
    top.set_title(f"expected calibration error {calibration.expected_error:.3f}", weight="normal", size=9)
    return figure


@styled
def precision_recall_figure(calibration: Calibration) -> Figure:
    """Draw precision against recall (left), and precision, recall and F1 by threshold (right)."""
    figure = new_figure(WIDTH, 3.6)
    left, right = figure.subplots(1, 2)
    recall, precision = ([100 * getattr(point.score, name) for point in calibration.curve] for name in ("recall", "precision"))
    left.plot(recall, precision, color=MUTED)
    thresholds = [point.threshold for point in calibration.curve]
    for name, colour in (("precision", BETTER), ("recall", WORSE), ("f1", INK)):
        values = [100 * getattr(point.score, name) for point in calibration.curve]
        right.plot(thresholds, values, color=colour, label="F1" if name == "f1" else name)
    points = [ThresholdScore(0.0, calibration.unfiltered), *([calibration.best] if calibration.best else [])]
    for point, size, fill, label in zip(points, (24, 90), (INK, "none"), ("all predictions", "best F1"), strict=False):
        left.scatter(
            100 * point.score.recall, 100 * point.score.precision, s=size, facecolors=fill, edgecolors=INK, zorder=3,
            label=label, clip_on=False,
        )  # fmt: skip
    if calibration.best:
        right.axvline(calibration.best.threshold, color=MUTED, linewidth=1, linestyle="--")
        right.set_title(
            f"best F1 {percent(calibration.best.score.f1)} at {calibration.best.threshold:.3f}", weight="normal", size=9
        )
    for axes, end in ((left, 100), (right, 1)):
        axes.set_xlim(0, end)
        axes.set_ylim(0, 103)
        axes.grid()
    left.set_xlabel("recall (%)")
    left.set_ylabel("precision (%)")
    right.set_xlabel("threshold")
    right.set_ylabel("%")
    figure.legend(loc="outside upper left", ncols=5)
    return figure
