"""Cosine of entities and other spans by their overlap (DSpERT, Table 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from spanwise.analysis.figures.style import BETTER, INK, MUTED, WIDTH, new_figure, styled
from spanwise.core.counting import counted


@styled
def overlaps_figure(levels: Sequence[str], cosines: Sequence[npt.NDArray[np.float64]]) -> Figure:
    """Draw the mean cosine of each level of overlap, and a bar from the lower to the upper quartile."""
    figure = new_figure(WIDTH, 3.2)
    axes = figure.subplots()
    names = []
    for x, (level, values) in enumerate(zip(levels, cosines, strict=True)):
        names.append(f"{level}\n{counted(len(values), 'pair')}")
        if len(values):
            low, high = np.quantile(values, (0.25, 0.75))
            axes.plot([x, x], [low, high], color=BETTER, linewidth=12, alpha=0.35, solid_capstyle="butt")
            axes.scatter(x, values.mean(), color=BETTER, s=36, zorder=3)
            axes.annotate(
                f"{values.mean():.2f}",
                (x, values.mean()),
                xytext=(12, 0),
                textcoords="offset points",
                va="center",
                color=INK,
            )
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.5, len(names) - 0.3)
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.set_ylabel("cosine")
    axes.set_xlabel("overlap: common words / words in either span")
    axes.grid(axis="y")
    return figure
