"""Losses and dev scores by epoch (SNG, figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spanwise.analysis.figures.log_axis import log_axis
from spanwise.analysis.figures.style import BETTER, HUES, INK, MUTED, WIDTH, new_figure, styled

SPREAD = 20  # from which ratio of the largest to the smallest loss on the axis is logarithmic


@styled
def losses_figure(
    epochs: Sequence[int], losses: Mapping[str, Sequence[float | None]], scores: Sequence[float], score: str
) -> Figure:
    """Above, the training loss and its parts; below, the dev score, with a mark at its best."""
    figure = new_figure(WIDTH, 4.6)
    above, below = figure.subplots(2, 1, sharex=True)
    marker = "o" if len(epochs) <= 40 else ""
    for number, (name, values) in enumerate(losses.items()):
        line = [float("nan") if value is None else value for value in values]
        # The sum is a thin line on top, for where one part is all of it they would hide one another.
        colour, width, height = (INK, 1.1, 3) if name == "loss" else (HUES[number % len(HUES)], 2.6, 2)
        above.plot(epochs, line, color=colour, linewidth=width, zorder=height, label=name, marker=marker, markersize=3)
    known = [value for values in losses.values() for value in values if value is not None and value > 0]
    if known and max(known) > SPREAD * min(known):
        log_axis(above)
    above.set_ylabel("training loss")
    if len(losses) > 1:
        figure.legend(*above.get_legend_handles_labels(), loc="outside upper left", ncols=5)
    below.plot(epochs, scores, color=BETTER, marker=marker, markersize=3)
    best = max(range(len(scores)), key=lambda at: (scores[at], -at))
    below.scatter([epochs[best]], [scores[best]], s=60, facecolors="none", edgecolors=INK, zorder=3)
    _note(below, epochs, best, scores)
    below.set_ylabel(score)
    below.set_xlabel("epoch")
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    below.margins(y=0.2)
    for axes in (above, below):
        axes.grid(axis="y")
    return figure


def _note(axes: Axes, epochs: Sequence[int], best: int, scores: Sequence[float]) -> None:
    """The best score, on the side of its mark where there is room."""
    is_late = 2 * best >= len(epochs)
    axes.annotate(
        f"{scores[best]:.4f}", (epochs[best], scores[best]), xytext=(-8 if is_late else 8, 6), textcoords="offset points",
        ha="right" if is_late else "left", color=MUTED, size=8.5,
    )  # fmt: skip
