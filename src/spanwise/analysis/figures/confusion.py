"""Which types are taken for which."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from spanwise.analysis.figures.heat_map import heat_map
from spanwise.analysis.figures.style import SEQUENTIAL, new_figure, styled
from spanwise.evaluation.confusion import Confusion

LARGEST_MATRIX = 30


@styled
def confusion_figure(confusion: Confusion, types: Sequence[str]) -> Figure:
    """Gold types in rows, predicted ones in columns; the shade is the share of the row, the number its count.

    The first of ``types`` are shown where they are many.
    """
    shown = list(types[:LARGEST_MATRIX])
    counts = [[*(confusion.counts[gold, found] for found in shown), confusion.missed[gold]] for gold in shown]
    counts.append([*(confusion.spurious[found] for found in shown), 0])
    shares: list[list[float | None]] = [[count / max(sum(row), 1) for count in row] for row in counts]
    shares[-1] = [None] * (len(shown) + 1)  # what is spurious has no gold to be a share of
    texts = [[f"{count:,}" if count else "" for count in row] for row in counts]
    size = len(shown) + 1
    figure = new_figure(2.2 + max(0.3 * size, 3.0), 1.4 + max(0.24 * size, 1.2))
    axes = figure.subplots()
    heat_map(
        axes, shares, texts, [*shown, "nothing (spurious)"], [*shown, "nothing (missed)"],
        colours=SEQUENTIAL, lowest=0, highest=1,
    )  # fmt: skip
    axes.set_ylabel("gold")
    axes.set_xlabel("predicted")
    return figure
