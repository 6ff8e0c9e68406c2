"""The figure of learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from spanwise.analysis.figures.style import BETTER, INK, NEUTRAL, WIDTH, new_figure, styled

if TYPE_CHECKING:
    from spanwise.active_learning.learning_curve import Curve


@styled
def curve_figure(curves: Sequence[Curve]) -> Figure:
    """Draw F1 by the number of sentences: a thin line per seed, a thick one for the mean of each strategy."""
    figure = new_figure(WIDTH, 4.0)
    axes = figure.subplots()
    split = curves[0].split
    strategies = list(dict.fromkeys(curve.strategy for curve in curves))
    for strategy, colour in zip(strategies, (BETTER, NEUTRAL), strict=False):
        group = [curve for curve in curves if curve.strategy == strategy]
        for curve in group:
            sizes, scores = [row.sentences for row in curve.rounds], [100 * row.f1[split] for row in curve.rounds]
            axes.plot(sizes, scores, color=colour, linewidth=0.8, alpha=0.5)
        rounds = list(zip(*(curve.rounds for curve in group), strict=False))
        means = [fmean(100 * row.f1[split] for row in rows) for rows in rounds]
        sizes = [rows[0].sentences for rows in rounds]
        axes.plot(sizes, means, color=colour, linewidth=2.2, marker="o", markersize=3, label=strategy)
    target = fmean(100 * curve.target for curve in curves)
    axes.axhline(target, color=INK, linewidth=0.9, linestyle="--")
    axes.set_xlabel("annotated sentences")
    axes.set_ylabel(f"{split} F1 (%)")
    axes.grid(axis="y")
    axes.legend(loc="lower right")
    return figure
