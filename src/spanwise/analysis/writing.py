"""Write the files of an analysis: figures as PNG and SVG, tables as CSV, all numbers as JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise.analysis.section import Cell, Section, Table
from spanwise.core.errors import SpanwiseError
from spanwise.core.version import __version__
from spanwise.files.writing import open_output

FIGURES, TABLES, NUMBERS, REPORT = "figures", "tables", "numbers.json", "report.html"


@dataclass(frozen=True)
class RenderedFigure:
    """A figure in both file formats."""

    png: bytes
    svg: bytes


def is_analysis(folder: Path) -> bool:
    """Whether a folder contains an analysis and no other files, so that it may be replaced."""
    names = {path.name for path in folder.iterdir()}
    return {NUMBERS, REPORT} <= names <= {FIGURES, TABLES, NUMBERS, REPORT}


def check_output_folder(out: Path) -> None:
    """Raise an error if an analysis cannot be written to ``out``; create its parent folders."""
    if out.is_file():
        raise SpanwiseError(f"{out}: expected a folder, found a file")
    if out.is_dir() and any(out.iterdir()) and not is_analysis(out):
        names = {path.name for path in out.iterdir()}
        others = ", ".join(sorted(names - {FIGURES, TABLES, NUMBERS, REPORT})[:3])
        has_analysis = {NUMBERS, REPORT} <= names
        problem = f"contains {others} in addition to an analysis" if has_analysis else "is not empty and contains no analysis"
        raise SpanwiseError(f"{out}: {problem}; choose another folder")
    try:
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpanwiseError(f"{out}: cannot create the folder: {error.strerror or error}") from None


def file_name(section: Section, name: str) -> str:
    """Return the file name of a section's figure or table, without the extension."""
    return f"{section.name}-{name}"


def render_figures(sections: Sequence[Section]) -> dict[str, RenderedFigure]:
    """Draw all figures; the keys are their file names."""
    from spanwise.analysis.figures.style import render

    rendered = {}
    for section in sections:
        for name, plot in section.figures.items():
            figure = plot.draw()
            png = render(figure, "png")
            figure.set_layout_engine("none")  # keep the layout, which takes most of the time to compute
            rendered[file_name(section, name)] = RenderedFigure(png, render(figure, "svg"))
    return rendered


def numbers(title: str, sections: Sequence[Section]) -> dict[str, Any]:
    """Return the content of ``numbers.json``: the rows of all tables."""
    return {
        "title": title,
        "spanwise": __version__,
        "sections": {
            section.name: {
                "title": section.title,
                "text": section.text,
                "tables": {
                    name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
                    for name, table in section.tables.items()
                },
            }
            for section in sections
        },
    }


def write_files(folder: Path, title: str, sections: Sequence[Section], figures: dict[str, RenderedFigure]) -> None:
    """Write all files except the report."""
    for name in (FIGURES, TABLES):
        (folder / name).mkdir()
    for name, figure in figures.items():
        (folder / FIGURES / f"{name}.png").write_bytes(figure.png)
        (folder / FIGURES / f"{name}.svg").write_bytes(figure.svg)
    for section in sections:
        for name, table in section.tables.items():
            write_table(table, folder / TABLES / f"{file_name(section, name)}.csv")
    with open_output(folder / NUMBERS) as file:
        json.dump(numbers(title, sections), file, ensure_ascii=False, allow_nan=False, indent=1)
        file.write("\n")


def write_table(table: Table, path: Path) -> None:
    """Write a table as CSV, safe for spreadsheets."""
    with open_output(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([csv_safe(cell) for cell in row] for row in (table.columns, *table.rows))


def csv_safe(cell: Cell) -> Cell:
    """Prefix text that a spreadsheet would run as a formula with an apostrophe.

    Words and types come from untrusted data, and a formula can send a sheet's contents elsewhere.
    ``numbers.json`` contains the unchanged text.

    >>> csv_safe("=1+1"), csv_safe("-like"), csv_safe("IL-2"), csv_safe(-0.5)
    ("'=1+1", "'-like", 'IL-2', -0.5)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
