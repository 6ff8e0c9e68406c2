"""Bar charts of errors by error type and by entity type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spanwise.analysis.figures.style import HUES, INK, MUTED, NEUTRAL, ROW, WIDTH, label_rows, new_figure, styled
from spanwise.evaluation.matching import ERROR_TYPES

MAX_TYPES = 25
COLOURS = dict(zip(ERROR_TYPES, (HUES[4], HUES[5], HUES[3], HUES[1], NEUTRAL), strict=True))


@styled
def errors_figure(counts: Mapping[str, int], by_type: Mapping[str, Mapping[str, int]], types: Sequence[str]) -> Figure:
    """Draw a bar for each error type, and below a stacked bar for each entity type."""
    shown = list(types[:MAX_TYPES])
    rows = len(ERROR_TYPES), max(len(shown), 1)
    figure = new_figure(WIDTH, 1.5 + ROW * sum(rows))
    top, bottom = figure.subplots(2, 1, height_ratios=rows)
    most = max([*(counts[error] for error in ERROR_TYPES), 1])
    for y, error in enumerate(ERROR_TYPES):
        top.barh(y, counts[error], height=0.65, color=COLOURS[error])
        top.text(counts[error] + 0.01 * most, y, f"{counts[error]:,}", va="center", color=INK, size=8.5)
    label_rows(top, ERROR_TYPES)
    top.set_xlim(0, 1.12 * most)
    top.set_title("errors by error type")
    ends = [0] * len(shown)
    for error in ERROR_TYPES:
        widths = [by_type[type].get(error, 0) for type in shown]
        bottom.barh(range(len(shown)), widths, left=ends, height=0.65, color=COLOURS[error], label=error)
        ends = [end + width for end, width in zip(ends, widths, strict=True)]
    longest = max([*ends, 1])
    for y, (type, end) in enumerate(zip(shown, ends, strict=True)):
        total = end + by_type[type].get("correct", 0)
        bottom.text(end + 0.01 * longest, y, f"{end:,} of {total:,}", va="center", color=MUTED, size=8)
    label_rows(bottom, shown)
    bottom.set_xlim(0, 1.2 * longest)
    bottom.set_title("errors by entity type")
    for axes in (top, bottom):
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.grid(axis="x")
    handles, labels = bottom.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(ERROR_TYPES))
    return figure
