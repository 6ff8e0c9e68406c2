"""How alike classes are: the mean cosine of every two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from spanwise.analysis.figures.heat_map import heat_map
from spanwise.analysis.figures.style import DIVERGING, LARGEST, WIDTH, new_figure, styled

MOST = 20  # classes whose cells have room for numbers


@styled
def cosines_figure(classes: Sequence[str], means: npt.NDArray[np.float64]) -> Figure:
    """A cell for every two classes; the lower triangle alone, for the upper one is the same. Small cells have no numbers."""
    names, shown = list(classes)[:LARGEST], means[:LARGEST, :LARGEST]
    rows = [[None if x > y or np.isnan(value) else float(value) for x, value in enumerate(row)] for y, row in enumerate(shown)]
    is_small = len(names) > MOST
    texts = [["" if is_small or x > y else _text(value) for x, value in enumerate(row)] for y, row in enumerate(shown)]
    side = max(2.6, 0.34 * len(names) + 1.4) if len(names) <= 16 else WIDTH
    figure = new_figure(max(side + 1.0, 4.2) if len(names) <= 16 else WIDTH, side)
    axes = figure.subplots()
    heat_map(axes, rows, texts, names, names, colours=DIVERGING, lowest=-1.0, highest=1.0)
    if is_small:
        corner = axes.inset_axes((0.6, 0.95, 0.36, 0.025))
        figure.colorbar(axes.collections[0], cax=corner, orientation="horizontal", label="cosine")
    return figure


def _text(value: float) -> str:
    """Two digits, for cells are small.

    >>> _text(0.254), _text(-0.5), _text(-0.001), _text(1.0), _text(float("nan"))
    ('.25', '-.50', '.00', '1.0', '')
    """
    if np.isnan(value):
        return ""
    return f"{value:.1f}" if abs(value) >= 0.995 else f"{value:z.2f}".replace("0.", ".", 1)
