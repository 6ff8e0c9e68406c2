"""Heat map: a matrix of coloured cells with text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from spanwise.analysis.figures.style import GRID, MUTED, PAPER, text_colour, truncate_all


def heat_map(
    axes: Axes,
    values: Sequence[Sequence[float | None]],
    texts: Sequence[Sequence[str]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    colours: str,
    low: float,
    high: float,
) -> None:
    """Draw cells coloured by ``values`` between ``low`` and ``high``, with ``texts`` on them; None is an empty cell."""
    shades = matplotlib.colormaps[colours]
    scale = Normalize(low, high, clip=True)
    numbers = np.array([[np.nan if value is None else value for value in row] for row in values], float)
    numbers = numbers.reshape(len(rows), len(columns))
    edges = np.arange(len(columns) + 1) - 0.5, np.arange(len(rows) + 1) - 0.5
    axes.pcolormesh(*edges, np.ma.masked_invalid(numbers), cmap=shades, norm=scale, edgecolors=PAPER, linewidth=1.2)
    size = 8.5 if len(columns) <= 12 else 7 if len(columns) <= 20 else 6.2
    for y, row in enumerate(texts):
        for x, text in enumerate(row):
            if np.isnan(numbers[y, x]):
                axes.text(x, y, text, ha="center", va="center", color=MUTED, size=size)
            else:
                axes.text(x, y, text, ha="center", va="center", color=text_colour(shades(scale(numbers[y, x]))), size=size)
    names = truncate_all(columns, 22)
    is_wide = max((len(a) + len(b) for a, b in pairwise(names)), default=0) * len(names) > 95  # neighbours would touch
    axes.set_xticks(range(len(columns)), names, rotation=45 if is_wide else 0, ha="right" if is_wide else "center")
    if len(columns) > 20:  # too narrow for slanted names
        axes.tick_params(axis="x", labelrotation=90)
    for label in axes.get_xticklabels() if is_wide else ():
        label.set_rotation_mode("anchor")
        label.set_verticalalignment("center" if len(columns) > 20 else "top")
    axes.set_yticks(range(len(rows)), truncate_all(rows, 22))
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_color(GRID)
