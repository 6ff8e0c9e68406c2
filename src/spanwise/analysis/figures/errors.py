"""How many mistakes of each kind, in all and of each type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spanwise.analysis.figures.style import HUES, INK, MUTED, NEUTRAL, ROW, WIDTH, label_rows, new_figure, styled
from spanwise.evaluation.judging import MISTAKES

MOST_TYPES = 25
KIND_COLOURS = dict(zip(MISTAKES, (HUES[4], HUES[5], HUES[3], HUES[1], NEUTRAL), strict=True))


@styled
def errors_figure(counts: Mapping[str, int], by_type: Mapping[str, Mapping[str, int]], types: Sequence[str]) -> Figure:
    """On top a bar for each kind; below, for each type, its mistakes laid end to end."""
    shown = list(types[:MOST_TYPES])
    rows = len(MISTAKES), max(len(shown), 1)
    figure = new_figure(WIDTH, 1.5 + ROW * sum(rows))
    kinds, each = figure.subplots(2, 1, height_ratios=rows)
    most = max([*(counts[kind] for kind in MISTAKES), 1])
    for place, kind in enumerate(MISTAKES):
        kinds.barh(place, counts[kind], height=0.65, color=KIND_COLOURS[kind])
        kinds.text(counts[kind] + 0.01 * most, place, f"{counts[kind]:,}", va="center", color=INK, size=8.5)
    label_rows(kinds, MISTAKES)
    kinds.set_xlim(0, 1.12 * most)
    kinds.set_title("mistakes of each kind")
    ends = [0] * len(shown)
    for kind in MISTAKES:
        widths = [by_type[type].get(kind, 0) for type in shown]
        each.barh(range(len(shown)), widths, left=ends, height=0.65, color=KIND_COLOURS[kind], label=kind)
        ends = [end + width for end, width in zip(ends, widths, strict=True)]
    longest = max([*ends, 1])
    for place, (type, end) in enumerate(zip(shown, ends, strict=True)):
        total = end + by_type[type].get("correct", 0)
        each.text(end + 0.01 * longest, place, f"{end:,} of {total:,}", va="center", color=MUTED, size=8)
    label_rows(each, shown)
    each.set_xlim(0, 1.2 * longest)
    each.set_title("mistakes of each type (of gold; of the prediction where spurious)")
    for axes in (kinds, each):
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.grid(axis="x")
    handles, labels = each.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(MISTAKES))
    return figure
