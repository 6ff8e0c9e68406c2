"""Volcano plot of the discrepancy between predicted and gold probabilities (SNG, section 3.5)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from spanwise.analysis.figures.log_axis import log_axis
from spanwise.analysis.figures.scatter import MAX_VECTOR_POINTS
from spanwise.analysis.figures.style import BETTER, HUES, WIDTH, WORSE, new_figure, styled

Floats = npt.NDArray[np.float64]
COLOURS = {"Up": WORSE, "Stable": BETTER, "Down": HUES[2]}


@styled
def volcano_figure(ratio: Floats, desire: Floats, tags: Mapping[str, npt.NDArray[np.bool_]]) -> Figure:
    """Draw a point for each gold entity at x = log2(p_pred / p_gold) and y = D, coloured by tag."""
    figure = new_figure(WIDTH, 4.2)
    axes = figure.subplots()
    lowest = desire[desire > 0].min(initial=1.0)
    for tag, selected in tags.items():
        if not selected.any():
            continue
        axes.scatter(
            ratio[selected], desire[selected].clip(min=lowest), s=16, color=COLOURS[tag], alpha=0.5, linewidths=0,
            label=f"{tag} ({selected.sum():,})", rasterized=len(ratio) > MAX_VECTOR_POINTS,
        )  # fmt: skip
    log_axis(axes)
    limit = max(1.0, float(np.abs(ratio).max(initial=0.0)))
    axes.set_xlim(-0.04 * limit if ratio.min(initial=0.0) >= 0 else -1.04 * limit, 1.04 * limit)
    axes.set_xlabel("log2(p_pred / p_gold)")
    axes.set_ylabel("D = var(p) / p_gold")
    axes.grid(axis="both")
    for handle in figure.legend(loc="outside upper left", ncols=3, markerscale=1.4).legend_handles:
        if handle is not None:
            handle.set_alpha(1)
    return figure
