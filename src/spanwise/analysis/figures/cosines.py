"""Heat map of the mean cosines of classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from spanwise.analysis.figures.heat_map import heat_map
from spanwise.analysis.figures.style import DIVERGING, MAX_BARS, WIDTH, new_figure, styled

MAX_WITH_NUMBERS = 20  # classes; smaller cells have no room for numbers


@styled
def cosines_figure(classes: Sequence[str], means: npt.NDArray[np.float64]) -> Figure:
    """Draw the lower triangle of the symmetric matrix; small cells have no numbers."""
    names, shown = list(classes)[:MAX_BARS], means[:MAX_BARS, :MAX_BARS]
    rows = [[None if x > y or np.isnan(value) else float(value) for x, value in enumerate(row)] for y, row in enumerate(shown)]
    is_small = len(names) > MAX_WITH_NUMBERS
    texts = [["" if is_small or x > y else _text(value) for x, value in enumerate(row)] for y, row in enumerate(shown)]
    side = max(2.6, 0.34 * len(names) + 1.4) if len(names) <= 16 else WIDTH
    figure = new_figure(max(side + 1.0, 4.2) if len(names) <= 16 else WIDTH, side)
    axes = figure.subplots()
    heat_map(axes, rows, texts, names, names, colours=DIVERGING, low=-1.0, high=1.0)
    if is_small:
        corner = axes.inset_axes((0.6, 0.95, 0.36, 0.025))
        figure.colorbar(axes.collections[0], cax=corner, orientation="horizontal", label="cosine")
    return figure


def _text(value: float) -> str:
    """Format a cosine with at most two digits.

    >>> _text(0.254), _text(-0.5), _text(-0.001), _text(1.0), _text(float("nan"))
    ('.25', '-.50', '.00', '1.0', '')
    """
    if np.isnan(value):
        return ""
    return f"{value:.1f}" if abs(value) >= 0.995 else f"{value:z.2f}".replace("0.", ".", 1)
