"""Scatter plot of projected vectors (SNG, section 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spanwise.analysis.figures.style import MUTED, NEUTRAL, PALETTE, WIDTH, new_figure, styled, truncate_all, type_colours
from spanwise.analysis.projection import Projection

OTHER_TYPES = "other types"
MAX_VECTOR_POINTS = 1000  # more points are rasterised in SVG files


@styled
def scatter_figure(
    projection: Projection,
    labels: Sequence[str],
    axis: str,
    *,
    is_found: npt.NDArray[np.bool_] | None = None,
    grey: str | None = None,
) -> Figure:
    """Draw a point for each vector, coloured by label; rare labels are in front and may share a colour.

    With ``is_found``, found entities are filled triangles and missed ones hollow circles; without it, all
    points are filled circles. The label ``grey`` is drawn in grey.
    """
    order = [label for label, _ in Counter(labels).most_common()]
    shown, rest = (order, []) if len(order) <= len(PALETTE) else (order[: len(PALETTE) - 1], order[len(PALETTE) - 1 :])
    colours = type_colours([label for label in shown if label != grey]) | dict.fromkeys((*rest, grey), NEUTRAL)
    point_labels = np.array(labels)
    entries = len(shown) + bool(rest) + (2 if is_found is not None else 0)
    figure = new_figure(WIDTH, max(4.4, 0.19 * entries + 0.5))
    axes = figure.subplots()
    for label in order:
        for marker, selected in _by_marker(point_labels == label, is_found):
            x, y = projection.points[selected].T
            fill = colours[label] if marker == "^" or is_found is None else "none"
            axes.scatter(
                x, y, s=18, marker=marker, alpha=0.75, linewidths=0.9, facecolors=fill, edgecolors=colours[label],
                rasterized=len(point_labels) > MAX_VECTOR_POINTS,
            )  # fmt: skip
    shares = projection.explained_variance or (None, None)
    axes.set_xlabel(_axis(axis, 1, shares[0]))
    axes.set_ylabel(_axis(axis, 2, shares[1]))
    axes.tick_params(labelsize=8)
    names = zip(shown, truncate_all(shown, 22), strict=True)
    handles: list[Any] = [_handle("o", colours[label], name) for label, name in names]
    if rest:
        handles.append(_handle("o", NEUTRAL, OTHER_TYPES))
    if is_found is not None:
        handles += [_handle("^", MUTED, "found"), _handle("o", MUTED, "missed", is_hollow=True)]
    figure.legend(handles=handles, loc="outside right upper", handletextpad=0.3, labelspacing=0.35, borderaxespad=0.2)
    return figure


def _by_marker(
    selected: npt.NDArray[np.bool_], is_found: npt.NDArray[np.bool_] | None
) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    return [("o", selected)] if is_found is None else [("o", selected & ~is_found), ("^", selected & is_found)]


def _axis(name: str, number: int, share: float | None) -> str:
    return f"{name} {number}" if share is None else f"{name} {number} ({share:.0%} of the variance)"


def _handle(marker: str, colour: str, label: str, *, is_hollow: bool = False) -> Line2D:
    face = "none" if is_hollow else colour
    return Line2D([], [], linestyle="", marker=marker, markersize=5, markerfacecolor=face, markeredgecolor=colour, label=label)
