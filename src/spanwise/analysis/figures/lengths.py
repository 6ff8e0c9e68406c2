"""How long entities and sentences are, in gold and as predicted."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spanwise.analysis.figures.style import HUES, WIDTH, new_figure, styled

WIDEST = 12  # words; wider entities are summed in the last bar


@styled
def entity_lengths_figure(gold: Mapping[int, int], predicted: Mapping[int, int]) -> Figure:
    """How many entities have so many words, gold beside predicted."""
    widest = max([*gold, *predicted], default=1)
    last = min(widest, WIDEST)
    names = [str(length) for length in range(1, last)] + [f"≥ {last}" if widest > last else str(last)]
    figure = new_figure(WIDTH, 2.8)
    axes = figure.subplots()
    for number, (side, counts) in enumerate((("gold", gold), ("predicted", predicted))):
        bars = [sum(n for length, n in counts.items() if min(length, last) == bar) for bar in range(1, last + 1)]
        places = [bar + 0.38 * (number - 0.5) for bar in range(1, last + 1)]
        axes.bar(places, bars, width=0.36, color=HUES[number], label=side)
    axes.set_xticks(range(1, last + 1), names)
    axes.set_xlabel("words of the entity")
    axes.set_ylabel("entities")
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(axis="y")
    axes.legend()
    return figure


@styled
def sentence_lengths_figure(lengths: Mapping[int, int]) -> Figure:
    """How many sentences have so many words."""
    longest = max(lengths, default=1)
    width = max(1, -(-longest // 40))
    bars = [sum(lengths.get(length, 0) for length in range(at, at + width)) for at in range(1, longest + 1, width)]
    figure = new_figure(WIDTH, 2.4)
    axes = figure.subplots()
    axes.bar([at + width / 2 - 0.5 for at in range(1, longest + 1, width)], bars, width=0.92 * width, color=HUES[0], alpha=0.75)
    axes.set_xlabel("words of the sentence")
    axes.set_ylabel("sentences")
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(axis="y")
    return figure
