"""Heat maps of differences to a baseline (after Bundling Learning for NER, Tables 6 and 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from spanwise.analysis.figures.heat_map import heat_map
from spanwise.analysis.figures.style import DIVERGING, WIDTH, new_figure, styled

Panel = tuple[Sequence[str], Mapping[str, Sequence[float | None]]]
COLUMNS = 2  # panels per row


@styled
def difference_figure(panels: Mapping[str, Panel], *, is_higher_better: bool = True) -> Figure:
    """Draw a heat map for each panel: column names, and a row of differences (from -1 to 1) per system.

    Blue means better than the baseline, red worse.
    """
    values = [abs(value) for _, rows in panels.values() for row in rows.values() for value in row if value is not None]
    largest = max([*values, 0.02])
    panel_columns = min(COLUMNS, len(panels))
    panel_rows = -(-len(panels) // panel_columns)
    systems = max((len(rows) for _, rows in panels.values()), default=1)
    figure = new_figure(WIDTH * (1.15 if panel_columns > 1 else 1), panel_rows * (0.85 + 0.3 * systems))
    all_axes = figure.subplots(panel_rows, panel_columns, squeeze=False).ravel()
    for axes, (title, (columns, rows)) in zip(all_axes, panels.items(), strict=False):
        sign = 1 if is_higher_better else -1
        colours = [[None if value is None else sign * value for value in row] for row in rows.values()]
        texts = [["–" if value is None else f"{100 * value:+.1f}".replace("-", "−") for value in row] for row in rows.values()]
        heat_map(
            axes, colours, texts, list(rows), columns, colours=DIVERGING, low=-1.3 * largest, high=1.3 * largest
        )  # fmt: skip
        axes.set_title(title)
    for axes in all_axes[len(panels) :]:
        axes.remove()
    return figure
