"""Losses and dev scores by epoch (SNG, Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spanwise.analysis.figures.log_axis import log_axis
from spanwise.analysis.figures.style import BETTER, HUES, INK, MUTED, WIDTH, new_figure, styled

LOG_RATIO = 20  # of the largest to the smallest loss, above which the axis is logarithmic


@styled
def losses_figure(
    epochs: Sequence[int], losses: Mapping[str, Sequence[float | None]], scores: Sequence[float], score: str
) -> Figure:
    """Draw the training loss and its terms (top) and the dev score in percent with a mark at its best (bottom)."""
    scores = [100 * value for value in scores]
    figure = new_figure(WIDTH, 4.6)
    top, bottom = figure.subplots(2, 1, sharex=True)
    marker = "o" if len(epochs) <= 40 else ""
    for index, (name, values) in enumerate(losses.items()):
        line = [float("nan") if value is None else value for value in values]
        # The total is a thin line in front, so that a single term that equals it stays visible.
        colour, width, height = (INK, 1.1, 3) if name == "loss" else (HUES[index % len(HUES)], 2.6, 2)
        top.plot(epochs, line, color=colour, linewidth=width, zorder=height, label=name, marker=marker, markersize=3)
    known = [value for values in losses.values() for value in values if value is not None and value > 0]
    if known and max(known) > LOG_RATIO * min(known):
        log_axis(top)
    top.set_ylabel("training loss")
    if len(losses) > 1:
        figure.legend(*top.get_legend_handles_labels(), loc="outside upper left", ncols=5)
    bottom.plot(epochs, scores, color=BETTER, marker=marker, markersize=3)
    best = max(range(len(scores)), key=lambda index: (scores[index], -index))
    bottom.scatter([epochs[best]], [scores[best]], s=60, facecolors="none", edgecolors=INK, zorder=3)
    _annotate_best(bottom, epochs, best, scores)
    bottom.set_ylabel(f"{score} (%)")
    bottom.set_xlabel("epoch")
    bottom.xaxis.set_major_locator(MaxNLocator(integer=True))
    bottom.margins(y=0.2)
    for axes in (top, bottom):
        axes.grid(axis="y")
    return figure


def _annotate_best(axes: Axes, epochs: Sequence[int], best: int, scores: Sequence[float]) -> None:
    """Write the best score next to its mark, on the side with more room."""
    is_late = 2 * best >= len(epochs)
    axes.annotate(
        f"{scores[best]:.2f}", (epochs[best], scores[best]), xytext=(-8 if is_late else 8, 6), textcoords="offset points",
        ha="right" if is_late else "left", color=MUTED, size=8.5,
    )  # fmt: skip
