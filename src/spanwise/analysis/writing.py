"""The files of an analysis: figures as PNG and SVG, tables as CSV, every number in one JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise.analysis.part import Cell, Part, Table
from spanwise.core.errors import SpanwiseError
from spanwise.core.version import __version__
from spanwise.files.writing import writing

FIGURES, TABLES, NUMBERS, REPORT = "figures", "tables", "numbers.json", "report.html"


@dataclass(frozen=True)
class Drawn:
    """A figure in both formats."""

    png: bytes
    svg: bytes


def is_analysis(folder: Path) -> bool:
    """Whether a folder holds an analysis and nothing else, so that another may take its place."""
    names = {path.name for path in folder.iterdir()}
    return {NUMBERS, REPORT} <= names <= {FIGURES, TABLES, NUMBERS, REPORT}


def check_folder(out: Path) -> None:
    """Say early that a folder cannot be written to; the folders around it are made, as a training makes them."""
    if out.is_file():
        raise SpanwiseError(f"{out}: is a file, a folder was expected")
    if out.is_dir() and any(out.iterdir()) and not is_analysis(out):
        names = {path.name for path in out.iterdir()}
        others = ", ".join(sorted(names - {FIGURES, TABLES, NUMBERS, REPORT})[:3])
        what = f"holds {others} besides an analysis" if {NUMBERS, REPORT} <= names else "is not empty and holds no analysis"
        raise SpanwiseError(f"{out}: {what}; choose another folder")
    try:
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpanwiseError(f"{out}: cannot be made: {error.strerror or error}") from None


def file_name(part: Part, name: str) -> str:
    """What the files of a part's figure or table are called, without their ending."""
    return f"{part.name}-{name}"


def draw(parts: Sequence[Part]) -> dict[str, Drawn]:
    """All figures, by the names of their files."""
    from spanwise.analysis.figures.style import saved

    drawn = {}
    for part in parts:
        for name, make in part.figures.items():
            figure = make()
            png = saved(figure, "png")
            figure.set_layout_engine("none")  # it has found its layout, which takes most of the time
            drawn[file_name(part, name)] = Drawn(png, saved(figure, "svg"))
    return drawn


def numbers(title: str, parts: Sequence[Part]) -> dict[str, Any]:
    """Every number, as ``numbers.json`` has it: for each part, the rows of its tables."""
    return {
        "title": title,
        "spanwise": __version__,
        "parts": {
            part.name: {
                "title": part.title,
                "text": part.text,
                "tables": {
                    name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
                    for name, table in part.tables.items()
                },
            }
            for part in parts
        },
    }


def write_files(folder: Path, title: str, parts: Sequence[Part], drawn: dict[str, Drawn]) -> None:
    """Write everything but the report."""
    for name in (FIGURES, TABLES):
        (folder / name).mkdir()
    for name, figure in drawn.items():
        (folder / FIGURES / f"{name}.png").write_bytes(figure.png)
        (folder / FIGURES / f"{name}.svg").write_bytes(figure.svg)
    for part in parts:
        for name, table in part.tables.items():
            _write_csv(table, folder / TABLES / f"{file_name(part, name)}.csv")
    with writing(folder / NUMBERS) as file:
        json.dump(numbers(title, parts), file, ensure_ascii=False, allow_nan=False, indent=1)
        file.write("\n")


def _write_csv(table: Table, path: Path) -> None:
    with writing(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([inert(cell) for cell in row] for row in (table.columns, *table.rows))


def inert(cell: Cell) -> Cell:
    """A cell as CSV has it: text that spreadsheets take for a formula has the apostrophe before it that makes it text.

    Words and types come from anybody's data, and a formula can send away what else is in a sheet. Numbers are no text, and
    ``numbers.json`` has everything as it is.

    >>> inert("=1+1"), inert("-like"), inert("IL-2"), inert(-0.5)
    ("'=1+1", "'-like", 'IL-2', -0.5)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
