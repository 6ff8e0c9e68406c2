"""Mean and standard deviation of the tables of several runs, usually trainings with different seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from spanwise.analysis.section import COORDINATES, Cell, Section, Table


def runs_section(runs: Sequence[Sequence[Section]]) -> Section:
    """Average all tables whose rows are the same in all runs; ``runs`` holds the sections of each run.

    Projected points are not averaged, because the axes of a projection differ between runs.
    """
    tables = {}
    for section in runs[0]:
        for name, table in section.tables.items():
            copies = [copy for sections in runs if (copy := _find_table(sections, section.name, name)) is not None]
            if len(copies) < len(runs) or table.columns[-2:] == COORDINATES:
                continue
            averaged = average_tables(copies)
            if averaged is not None and len(averaged.columns) > len(table.columns):
                tables[f"{section.name}-{name}"] = averaged
    text = (
        f"Means over {len(runs)} runs; columns that end in “_sd” are standard deviations. Tables whose rows differ between "
        "runs, such as lists of errors, and points of projections are omitted. All other sections of this report show the "
        "first run."
    )
    return Section("runs", f"Mean and deviation of {len(runs)} runs", text, tables)


def average_tables(tables: Sequence[Table]) -> Table | None:
    """Replace each column of numbers that differ between tables by their mean and standard deviation.

    None if the tables have different columns, or rows with different text.

    >>> average_tables([Table(("type", "support", "count"), (("X", 7, count),)) for count in (1, 2, 3)]).rows
    (('X', 7, 2.0, 1.0),)
    """
    first = tables[0]
    if any(table.columns != first.columns or len(table.rows) != len(first.rows) for table in tables):
        return None
    columns: list[tuple[str, list[Cell]]] = []
    for index, name in enumerate(first.columns):
        values = [tuple(table.rows[row][index] for table in tables) for row in range(len(first.rows))]
        if all(len(set(cells)) == 1 for cells in values):
            columns.append((name, [cells[0] for cells in values]))
        elif any(isinstance(cell, str) for cells in values for cell in cells):
            return None
        else:
            numbers = [[float(cell) for cell in cells if cell is not None] for cells in values]
            columns.append((name, [fmean(row) if row else None for row in numbers]))
            columns.append((f"{name}_sd", [stdev(row) if len(row) > 1 else None for row in numbers]))
    rows = tuple(zip(*(cells for _, cells in columns), strict=True))
    percentages = (*first.percentages, *(f"{name}_sd" for name in first.percentages))
    return Table(tuple(name for name, _ in columns), rows, first.title, percentages)


def _find_table(sections: Sequence[Section], section: str, name: str) -> Table | None:
    tables: Iterator[Table] = (one.tables[name] for one in sections if one.name == section and name in one.tables)
    return next(tables, None)
