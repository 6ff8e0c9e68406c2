"""Models less a standard one, cell by cell (after Tables 6 and 7 of Bundling Learning for NER)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from spanwise.analysis.figures.heat_map import heat_map
from spanwise.analysis.figures.style import DIVERGING, WIDTH, new_figure, styled

Panel = tuple[Sequence[str], Mapping[str, Sequence[float | None]]]
ACROSS = 2


@styled
def difference_figure(panels: Mapping[str, Panel], *, more_is_better: bool = True) -> Figure:
    """A heat map for each panel: the names of its columns, and a row of differences (from -1 to 1) for each model.

    Blue is where the model is better than the standard, red where it is worse.
    """
    values = [abs(value) for _, rows in panels.values() for row in rows.values() for value in row if value is not None]
    largest = max([*values, 0.02])
    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    models = max((len(rows) for _, rows in panels.values()), default=1)
    figure = new_figure(WIDTH * (1.15 if across > 1 else 1), down * (0.85 + 0.3 * models))
    places = figure.subplots(down, across, squeeze=False).ravel()
    for axes, (title, (columns, rows)) in zip(places, panels.items(), strict=False):
        sign = 1 if more_is_better else -1
        colours = [[None if value is None else sign * value for value in row] for row in rows.values()]
        texts = [["–" if value is None else f"{100 * value:+.1f}".replace("-", "−") for value in row] for row in rows.values()]
        heat_map(
            axes, colours, texts, list(rows), columns, colours=DIVERGING, lowest=-1.3 * largest, highest=1.3 * largest
        )  # fmt: skip
        axes.set_title(title)
    for axes in places[len(panels) :]:
        axes.remove()
    return figure
