"""Norms of the vectors of each class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from spanwise.analysis.figures.style import BETTER, INK, MAX_BARS, MUTED, ROW, WIDTH, label_rows, new_figure, styled


@styled
def norms_figure(norms: Mapping[str, npt.NDArray[np.floating]]) -> Figure:
    """Draw the mean norm of each class, and a line of one standard deviation to each side."""
    shown = dict(list(norms.items())[:MAX_BARS])
    figure = new_figure(WIDTH, 0.9 + ROW * len(shown))
    axes = figure.subplots()
    for y, values in enumerate(shown.values()):
        mean, deviation = float(values.mean()), float(values.std())
        axes.plot([mean - deviation, mean + deviation], [y, y], color=MUTED, linewidth=1.4)
        axes.scatter(mean, y, color=BETTER, s=26, zorder=3)
        axes.text(1.01, y, f"{mean:.2f}", transform=axes.get_yaxis_transform(), va="center", ha="left", color=INK, size=8.5)
    label_rows(axes, shown)
    axes.set_xlim(left=0)
    axes.set_xlabel("norm (mean and standard deviation)")
    axes.grid(axis="x")
    return figure
