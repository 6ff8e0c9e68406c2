"""Sections of an analysis: text, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell: TypeAlias = str | int | float | None
RATES = ("precision", "recall", "f1")
SCORE_COLUMNS = (*RATES, "support", "predicted", "correct")
COORDINATES = ("x", "y")  # the last columns of tables of projected points


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns, written as a CSV file and shown in the report under ``title``.

    ``percentages`` are columns of fractions that the report shows as percentages; files keep the fractions.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    percentages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"expected rows of {len(self.columns)} cells, found {len(row)}")


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure that is drawn on demand, and a caption that says what it shows and how to read it.

    As the last value of a notebook cell it is shown.
    """

    draw: Callable[[], Figure]
    caption: str

    def _repr_png_(self) -> bytes:
        from spanwise.analysis.figures.style import render

        return render(self.draw(), "png")


def limit_note(limit: int, count: int) -> str:
    """Return the end of a caption, if a figure is limited to the first of several types.

    >>> limit_note(40, 99), limit_note(40, 40)
    (' Only the first 40 of 99 are drawn; the table has all.', '')
    """
    return f" Only the first {limit:,} of {count:,} are drawn; the table has all." if count > limit else ""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the report.

    ``name`` is the prefix of its file names (``errors``, ``calibration``), ``title`` its heading and
    ``text`` a summary of the results. ``tables`` hold all numbers that the ``figures`` draw.
    """

    name: str
    title: str
    text: str
    tables: Mapping[str, Table] = field(default_factory=dict)
    figures: Mapping[str, Plot] = field(default_factory=dict)
