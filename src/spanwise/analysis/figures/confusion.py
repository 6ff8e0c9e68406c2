"""Confusion matrix of types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from matplotlib.figure import Figure

from spanwise.analysis.figures.heat_map import heat_map
from spanwise.analysis.figures.style import SEQUENTIAL, new_figure, styled
from spanwise.evaluation.confusion import Confusion

MAX_TYPES = 30


@styled
def confusion_figure(confusion: Confusion, types: Sequence[str]) -> Figure:
    """Draw gold types as rows and predicted types as columns, coloured by the share of the row.

    Only the first ``MAX_TYPES`` types are shown.
    """
    shown = list(types[:MAX_TYPES])
    counts = [[*(confusion.counts[gold, predicted] for predicted in shown), confusion.missed[gold]] for gold in shown]
    counts.append([*(confusion.spurious[predicted] for predicted in shown), 0])
    totals = Counter(confusion.missed)
    for (gold, _), count in confusion.counts.items():
        totals[gold] += count  # predicted types that are not shown count, too
    shares: list[list[float | None]] = [
        [count / max(totals[gold], 1) for count in row] for gold, row in zip(shown, counts[:-1], strict=True)
    ]
    shares.append([None] * (len(shown) + 1))  # spurious entities are not a share of a gold type
    texts = [[f"{count:,}" if count else "" for count in row] for row in counts]
    size = len(shown) + 1
    figure = new_figure(2.2 + max(0.3 * size, 3.0), 1.4 + max(0.24 * size, 1.2))
    axes = figure.subplots()
    heat_map(
        axes, shares, texts, [*shown, "none (spurious)"], [*shown, "none (missed)"],
        colours=SEQUENTIAL, low=0, high=1,
    )  # fmt: skip
    axes.set_ylabel("gold type")
    axes.set_xlabel("predicted type")
    return figure
