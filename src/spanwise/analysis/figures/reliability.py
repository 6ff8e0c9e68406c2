"""Whether scores can be taken at their word, and what a threshold on them does."""

from __future__ import annotations

from matplotlib.figure import Figure

from spanwise.analysis.figures.style import BETTER, GRID, INK, MUTED, WIDTH, WORSE, new_figure, styled
from spanwise.evaluation.calibration import AtThreshold, Calibration

SIZE = 4.4


@styled
def reliability_figure(found: Calibration) -> Figure:
    """The share of right predictions by score, with the line on which scores are probabilities; below, how many they are."""
    figure = new_figure(WIDTH, SIZE)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    bins = [one for one in found.equal_width if one.count]
    for one in bins:
        above.bar(
            one.low,
            one.share_correct or 0.0,
            one.high - one.low,
            align="edge",
            color="#b9d6ea",
            edgecolor=BETTER,
            linewidth=0.8,
        )
        below.bar(one.low, one.count, one.high - one.low, align="edge", color=GRID, edgecolor=MUTED, linewidth=0.8)
        below.annotate(
            f"{one.count:,}", ((one.low + one.high) / 2, one.count), xytext=(0, 2), textcoords="offset points", ha="center",
            va="bottom", size=7.5, color=INK,
        )  # fmt: skip
    above.plot([0, 1], [0, 1], color=MUTED, linestyle="--", linewidth=1, label="scores that are probabilities")
    means = [(one.mean_score or 0.0, one.share_correct or 0.0) for one in found.equal_count if one.count]
    above.plot(*zip(*means, strict=True), color=WORSE, marker="o", markersize=4, linewidth=1.2, label="bins of equal count")
    above.set_xlim(0, 1)
    above.set_ylim(0, 1.03)
    above.set_ylabel("share that is right")
    below.set_ylabel("predictions")
    below.set_xlabel("score")
    below.margins(y=0.3)
    figure.legend(loc="outside upper left", ncols=2)
    above.set_title(f"expected calibration error {found.expected_error:.3f}", weight="normal", size=9)
    return figure


@styled
def precision_recall_figure(found: Calibration) -> Figure:
    """On the left precision against recall, on the right all three scores by threshold, with marks at the best F1."""
    figure = new_figure(WIDTH, 3.6)
    left, right = figure.subplots(1, 2)
    recall, precision = ([getattr(point.score, name) for point in found.curve] for name in ("recall", "precision"))
    left.plot(recall, precision, color=MUTED)
    thresholds = [point.threshold for point in found.curve]
    for name, colour in (("precision", BETTER), ("recall", WORSE), ("f1", INK)):
        values = [getattr(point.score, name) for point in found.curve]
        right.plot(thresholds, values, color=colour, label="F1" if name == "f1" else name)
    points = [AtThreshold(0.0, found.everything), *([found.best] if found.best else [])]
    for point, size, inside, label in zip(points, (24, 90), (INK, "none"), ("no threshold", "best F1"), strict=False):
        place = (point.score.recall, point.score.precision)
        left.scatter(*place, s=size, facecolors=inside, edgecolors=INK, zorder=3, label=label, clip_on=False)
    if found.best:
        right.axvline(found.best.threshold, color=MUTED, linewidth=1, linestyle="--")
        right.set_title(f"best F1 {found.best.score.f1:.4f} at {found.best.threshold:.3f}", weight="normal", size=9)
    for axes in (left, right):
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.03)
        axes.grid()
    left.set_xlabel("recall")
    left.set_ylabel("precision")
    right.set_xlabel("threshold")
    figure.legend(loc="outside upper left", ncols=5)
    return figure
