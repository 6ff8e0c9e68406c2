"""Histograms of entity and sentence lengths."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spanwise.analysis.figures.style import HUES, WIDTH, new_figure, styled

MAX_LENGTH = 12  # words; the last bar includes longer entities


@styled
def entity_lengths_figure(gold: Mapping[int, int], predicted: Mapping[int, int]) -> Figure:
    """Draw the number of gold and predicted entities by length."""
    longest = max([*gold, *predicted], default=1)
    last = min(longest, MAX_LENGTH)
    names = [str(length) for length in range(1, last)] + [f"≥ {last}" if longest > last else str(last)]
    figure = new_figure(WIDTH, 2.8)
    axes = figure.subplots()
    for index, (side, counts) in enumerate((("gold", gold), ("predicted", predicted))):
        heights = [sum(n for length, n in counts.items() if min(length, last) == bar) for bar in range(1, last + 1)]
        positions = [bar + 0.38 * (index - 0.5) for bar in range(1, last + 1)]
        axes.bar(positions, heights, width=0.36, color=HUES[index], label=side)
    axes.set_xticks(range(1, last + 1), names)
    axes.set_xlabel("entity length (words)")
    axes.set_ylabel("entities")
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(axis="y")
    axes.legend()
    return figure


@styled
def sentence_lengths_figure(lengths: Mapping[int, int]) -> Figure:
    """Draw the number of sentences by length."""
    longest = max(lengths, default=1)
    width = max(1, -(-longest // 40))
    starts = range(1, longest + 1, width)
    heights = [sum(lengths.get(length, 0) for length in range(start, start + width)) for start in starts]
    figure = new_figure(WIDTH, 2.4)
    axes = figure.subplots()
    axes.bar([start + width / 2 - 0.5 for start in starts], heights, width=0.92 * width, color=HUES[0], alpha=0.75)
    axes.set_xlabel("sentence length (words)")
    axes.set_ylabel("sentences")
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(axis="y")
    return figure
