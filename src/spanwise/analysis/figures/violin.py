"""Violin plot of the probabilities of gold types (SNG, section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.mlab import GaussianKDE

from spanwise.analysis.figures.style import BETTER, INK, MAX_BARS, MUTED, PAPER, WIDTH, WORSE, label_rows, new_figure, styled

Floats = npt.NDArray[np.float64]
MAX_POINTS = 5  # up to this number, values are drawn as points instead of a density


class FoundAndMissed(NamedTuple):
    """Probabilities of the gold types of found and of missed entities."""

    hits: Floats
    misses: Floats


@styled
def violin_figure(rows: Mapping[str, FoundAndMissed]) -> Figure:
    """Draw a violin for each row: found entities above, missed entities below, and white bars at the medians."""
    shown = dict(list(rows.items())[:MAX_BARS])
    figure = new_figure(WIDTH, 1.1 + 0.42 * len(shown))
    axes = figure.subplots()
    for y, row in enumerate(shown.values()):
        axes.axhline(y, color=MUTED, linewidth=0.5, alpha=0.5)
        _draw_half(axes, row.hits, y, -0.42, BETTER)
        _draw_half(axes, row.misses, y, 0.42, WORSE)
        axes.text(1.02, y - 0.2, f"{len(row.hits):,}", va="center", ha="left", color=BETTER, size=8)
        axes.text(1.02, y + 0.2, f"{len(row.misses):,}", va="center", ha="left", color=WORSE, size=8)
    label_rows(axes, shown)
    axes.set_xlim(0, 1)
    axes.grid(axis="x")
    axes.set_xlabel("probability of the gold type")
    for colour, label in ((BETTER, "found"), (WORSE, "missed")):
        axes.plot((), (), color=colour, linewidth=7, alpha=0.8, label=label)
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def _draw_half(axes: Axes, values: Floats, y: int, height: float, colour: str) -> None:
    """Draw half a violin on the line at ``y``; a negative ``height`` is upwards, because the axis is inverted."""
    if not len(values):
        return
    if len(values) <= MAX_POINTS or np.ptp(values) < 1e-3:
        axes.scatter(values, np.full(len(values), y + height / 2), s=14, color=colour, alpha=0.8, linewidths=0, clip_on=False)
        return
    density = GaussianKDE(values)
    x = np.linspace(values.min(), values.max(), 64)
    heights = density.evaluate(x)
    axes.fill_between(x, y, y + height * heights / heights.max(), color=colour, alpha=0.8, linewidth=0)
    median = float(np.median(values))
    axes.plot([median, median], [y, y + height], color=INK, linewidth=3, solid_capstyle="butt", clip_on=False)
    axes.plot([median, median], [y, y + height], color=PAPER, linewidth=1.4, solid_capstyle="butt", clip_on=False)
