"""Vectors on a plane, coloured by type; a triangle is what the model found, a circle what it missed (SNG, section 3.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from spanwise.analysis.figures.style import MUTED, NEUTRAL, PALETTE, WIDTH, new_figure, shortened, styled, type_colours
from spanwise.analysis.projection import Plane

REST = "other types"
MANY = 1000  # points from which on an SVG file has them as a picture, lest it weigh megabytes


@styled
def points_figure(
    plane: Plane, kinds: Sequence[str], axis: str, *, found: npt.NDArray[np.bool_] | None = None, plain: str | None = None
) -> Figure:
    """A point for each vector, the rarer kinds on top; of many types, the rarest share one colour.

    Without ``found`` all points are full circles. The kind that is ``plain`` is no type, and grey.
    """
    order = [kind for kind, _ in Counter(kinds).most_common()]
    named, rest = (order, []) if len(order) <= len(PALETTE) else (order[: len(PALETTE) - 1], order[len(PALETTE) - 1 :])
    colours = type_colours([kind for kind in named if kind != plain]) | dict.fromkeys((*rest, plain), NEUTRAL)
    names = np.array(kinds)
    entries = len(named) + bool(rest) + (2 if found is not None else 0)
    figure = new_figure(WIDTH, max(4.4, 0.19 * entries + 0.5))
    axes = figure.subplots()
    for kind in order:
        for marker, own in _marked(names == kind, found):
            x, y = plane.points[own].T
            inside = colours[kind] if marker == "^" or found is None else "none"
            axes.scatter(
                x, y, s=18, marker=marker, alpha=0.75, linewidths=0.9, facecolors=inside, edgecolors=colours[kind],
                rasterized=len(names) > MANY,
            )  # fmt: skip
    shares = plane.shares or (None, None)
    axes.set_xlabel(_axis(axis, 1, shares[0]))
    axes.set_ylabel(_axis(axis, 2, shares[1]))
    axes.tick_params(labelsize=8)
    handles: list[Any] = [_handle("o", colours[kind], shortened(kind, 22)) for kind in named]
    if rest:
        handles.append(_handle("o", NEUTRAL, REST))
    if found is not None:
        handles += [_handle("^", MUTED, "found"), _handle("o", MUTED, "missed", hollow=True)]
    figure.legend(handles=handles, loc="outside right upper", handletextpad=0.3, labelspacing=0.35, borderaxespad=0.2)
    return figure


def _marked(own: npt.NDArray[np.bool_], found: npt.NDArray[np.bool_] | None) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    return [("o", own)] if found is None else [("o", own & ~found), ("^", own & found)]


def _axis(name: str, number: int, share: float | None) -> str:
    return f"{name} {number}" if share is None else f"{name} {number} ({share:.0%} of the variance)"


def _handle(marker: str, colour: str, label: str, *, hollow: bool = False) -> Line2D:
    face = "none" if hollow else colour
    return Line2D([], [], linestyle="", marker=marker, markersize=5, markerfacecolor=face, markeredgecolor=colour, label=label)
