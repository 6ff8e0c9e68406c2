"""Bar chart of precision, recall and F1 by type."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from spanwise.analysis.figures.style import (
    HUES,
    INK,
    MAX_BARS,
    MUTED,
    NEUTRAL,
    ROW,
    WIDTH,
    WORSE,
    label_rows,
    new_figure,
    styled,
)  # fmt: skip
from spanwise.evaluation.scores import Score


@styled
def scores_figure(types: Mapping[str, Score], micro: Score) -> Figure:
    """Draw a bar for the F1 of each type, with marks for precision and recall; only the most frequent types."""
    shown = [("all types", micro), *list(types.items())[:MAX_BARS]]
    figure = new_figure(WIDTH, 1.0 + ROW * len(shown))
    axes = figure.subplots()
    rows = range(len(shown))
    scores = [score for _, score in shown]
    colours = [NEUTRAL, *[HUES[5]] * (len(scores) - 1)]
    axes.barh(rows, [100 * score.f1 for score in scores], height=0.62, color=colours, alpha=0.45, label="F1")
    # Vertically offset, so that equal values do not hide each other; not clipped at 0 and 100.
    for name, direction, marker, colour in (("precision", -1, "v", WORSE), ("recall", 1, "^", INK)):
        values, heights = [100 * getattr(score, name) for score in scores], [row + 0.16 * direction for row in rows]
        axes.scatter(values, heights, marker=marker, s=26, color=colour, zorder=3, label=name, clip_on=False)
    for row, score in zip(rows, scores, strict=True):
        axes.text(102, row, f"{100 * score.f1:.1f}", va="center", ha="left", color=INK, size=8.5)
        axes.text(118, row, f"{score.support:,}", va="center", ha="right", color=MUTED, size=8.5)
    axes.text(102, -0.95, "F1", ha="left", va="center", color=MUTED, size=8)
    axes.text(118, -0.95, "gold", ha="right", va="center", color=MUTED, size=8)
    label_rows(axes, [name for name, _ in shown])
    axes.tick_params(axis="y", pad=6)  # room for the marks at 0
    axes.set_xlim(0, 100)
    axes.set_xlabel("%")
    axes.grid(axis="x")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3)
    return figure
