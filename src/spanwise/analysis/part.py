"""What every piece of an analysis gives to the report: tables of all its numbers, and figures drawn from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of numbers and words under named columns: a CSV file, or a table on the page."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells under {len(self.columns)} columns")


@dataclass(frozen=True, slots=True)
class Part:
    """One question about a model and its answer.

    ``name`` is the beginning of its files' names (``errors``, ``calibration``), ``title`` its heading, ``text`` says in a few
    sentences what is seen. ``tables`` hold every number, ``figures`` draw them: each is called when it is wanted, once for each
    file format, so that nothing is drawn in vain.
    """

    name: str
    title: str
    text: str
    tables: Mapping[str, Table] = field(default_factory=dict)
    figures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
