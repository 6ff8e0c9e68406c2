"""How the probabilities of gold types are spread, of found and of missed entities (SNG, section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.mlab import GaussianKDE

from spanwise.analysis.figures.style import BETTER, INK, LARGEST, MUTED, PAPER, WIDTH, WORSE, label_rows, new_figure, styled

Floats = npt.NDArray[np.float64]
FEW = 5  # values or less are drawn as points: a density would pretend to know more


class Halves(NamedTuple):
    """The probabilities of the gold types of entities that were found and of those that were missed."""

    found: Floats
    missed: Floats


@styled
def violin_figure(rows: Mapping[str, Halves]) -> Figure:
    """A violin for each row: its upper half the found entities, its lower half the missed, a white bar at the medians."""
    shown = dict(list(rows.items())[:LARGEST])
    figure = new_figure(WIDTH, 1.1 + 0.42 * len(shown))
    axes = figure.subplots()
    for place, both in enumerate(shown.values()):
        axes.axhline(place, color=MUTED, linewidth=0.5, alpha=0.5)
        _half(axes, both.found, place, -0.42, BETTER)
        _half(axes, both.missed, place, 0.42, WORSE)
        axes.text(1.02, place - 0.2, f"{len(both.found):,}", va="center", ha="left", color=BETTER, size=8)
        axes.text(1.02, place + 0.2, f"{len(both.missed):,}", va="center", ha="left", color=WORSE, size=8)
    label_rows(axes, shown)
    axes.set_xlim(0, 1)
    axes.grid(axis="x")
    axes.set_xlabel("probability of the gold type")
    swatch = ((), ())
    for colour, label in ((BETTER, "found"), (WORSE, "missed")):
        axes.plot(*swatch, color=colour, linewidth=7, alpha=0.8, label=label)
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def _half(axes: Axes, values: Floats, place: int, height: float, colour: str) -> None:
    """One half of a violin on the line at ``place``; ``height`` is negative for the upper one, for rows go down."""
    if not len(values):
        return
    if len(values) <= FEW or np.ptp(values) < 1e-3:
        axes.scatter(
            values, np.full(len(values), place + height / 2), s=14, color=colour, alpha=0.8, linewidths=0, clip_on=False
        )
        return
    density = GaussianKDE(values)
    at = np.linspace(values.min(), values.max(), 64)
    heights = density.evaluate(at)
    axes.fill_between(at, place, place + height * heights / heights.max(), color=colour, alpha=0.8, linewidth=0)
    middle = float(np.median(values))
    axes.plot([middle, middle], [place, place + height], color=INK, linewidth=3, solid_capstyle="butt", clip_on=False)
    axes.plot([middle, middle], [place, place + height], color=PAPER, linewidth=1.4, solid_capstyle="butt", clip_on=False)
