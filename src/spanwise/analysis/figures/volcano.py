"""The discrepancy between what is likeliest and what is true (SNG, section 3.5)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from spanwise.analysis.figures.log_axis import log_axis
from spanwise.analysis.figures.points import MANY
from spanwise.analysis.figures.style import BETTER, HUES, WIDTH, WORSE, new_figure, styled

Floats = npt.NDArray[np.float64]
COLOURS = {"Up": WORSE, "Stable": BETTER, "Down": HUES[2]}


@styled
def volcano_figure(ratio: Floats, desire: Floats, tags: Mapping[str, npt.NDArray[np.bool_]]) -> Figure:
    """A point for each gold entity: log2(p_pred / p_gold) across, D upwards; colours are the tags."""
    figure = new_figure(WIDTH, 4.2)
    axes = figure.subplots()
    lowest = desire[desire > 0].min(initial=1.0)
    for tag, own in tags.items():
        if not own.any():
            continue
        axes.scatter(
            ratio[own], desire[own].clip(min=lowest), s=16, color=COLOURS[tag], alpha=0.5, linewidths=0,
            label=f"{tag} ({own.sum():,})", rasterized=len(ratio) > MANY,
        )  # fmt: skip
    log_axis(axes)
    reach = max(1.0, float(np.abs(ratio).max(initial=0.0)))
    axes.set_xlim(-0.04 * reach if ratio.min(initial=0.0) >= 0 else -1.04 * reach, 1.04 * reach)
    axes.set_xlabel("log2(p_pred / p_gold)")
    axes.set_ylabel("D = var(p) / p_gold")
    axes.grid(axis="both")
    for handle in figure.legend(loc="outside upper left", ncols=3, markerscale=1.4).legend_handles:
        if handle is not None:
            handle.set_alpha(1)
    return figure
