"""Build the HTML report of an analysis: one self-contained file without external resources."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

from spanwise.analysis.section import Cell, Plot, Section, Table
from spanwise.analysis.writing import FIGURES, TABLES, RenderedFigure, file_name
from spanwise.core.counting import counted
from spanwise.core.percentages import percent
from spanwise.core.version import __version__
from spanwise.drawing import css, page_head

MAX_SVG_LENGTH = 150_000  # characters; figures with many points are smaller as PNG
MAX_ROWS = 80  # of a table in the report
MAX_OPEN_ROWS = 12  # longer tables are collapsed
MAX_CELL_LENGTH = 200


@dataclass(frozen=True)
class HtmlSection:
    """A section of the report with its own HTML, in which all text is escaped."""

    name: str
    title: str
    html: str


def report(
    title: str,
    headline: Mapping[str, str],
    sections: Sequence[Section | HtmlSection],
    figures: Mapping[str, RenderedFigure],
) -> str:
    """Return the HTML page. ``headline`` are the numbers at the top."""
    pieces = {
        "title": escape(title),
        "version": escape(__version__),
        "cards": "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in headline.items()),
        "nav": "".join(f'<a href="#{section.name}">{escape(section.title)}</a>' for section in sections),
        "sections": "\n".join(_section(section, figures) for section in sections),
    }
    # Encode URLs in the data's text, so that the file contains none. Browsers show them unchanged.
    encoded = {
        name: re.sub("http", lambda match: f"&#{ord(match[0][0])};{match[0][1:]}", piece, flags=re.IGNORECASE)
        for name, piece in pieces.items()
    }
    head = page_head(f"{encoded['title']} – analysis", css() + _asset("report.css"))
    return Template(_asset("report.html")).substitute(encoded, head=head, js=_asset("report.js"))


def _section(section: Section | HtmlSection, figures: Mapping[str, RenderedFigure]) -> str:
    body = section.html if isinstance(section, HtmlSection) else _body(section, figures)
    return f'<section id="{section.name}"><h2>{escape(section.title)}</h2>{body}</section>'


def _body(section: Section, figures: Mapping[str, RenderedFigure]) -> str:
    plots = "".join(_figure(file_name(section, name), plot, figures) for name, plot in section.figures.items())
    tables = "".join(_table(section, name, table) for name, table in section.tables.items() if table.rows)
    text = f'<p class="text">{escape(section.text)}</p>' if section.text else ""
    return f'{text}<div class="figures">{plots}</div>{tables}'


def _figure(file: str, plot: Plot, figures: Mapping[str, RenderedFigure]) -> str:
    from spanwise.analysis.inline_svg import inline_svg  # needs matplotlib; a page without figures does not

    caption = escape(plot.caption)
    image = inline_svg(figures[file].svg.decode(), file, caption)
    if len(image) > MAX_SVG_LENGTH:
        image = _png_image(figures[file].png, caption)
    return f"<figure>{image}<figcaption>{caption} <small>{FIGURES}/{file}.png, .svg</small></figcaption></figure>"


def _png_image(png: bytes, label: str) -> str:
    """Return an ``<img>`` with 256 colours, which takes a third of the bytes."""
    from PIL import Image  # a dependency of matplotlib

    from spanwise.analysis.figures.style import DPI

    image = Image.open(io.BytesIO(png)).convert("RGB")
    stream = io.BytesIO()
    image.quantize(256, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    data = base64.b64encode(stream.getvalue()).decode()
    return f'<img alt="{label}" width={image.width * 96 // DPI} src="data:image/png;base64,{data}">'


def _table(section: Section, name: str, table: Table) -> str:
    shown = table.rows[:MAX_ROWS]
    is_text = [any(isinstance(value, str) for value in values) for values in zip(*shown, strict=True)]
    head = "".join(
        f"<th{'' if column_is_text else ' class=n'}>{escape(_heading(column))}</th>"
        for column, column_is_text in zip(table.columns, is_text, strict=True)
    )
    is_percentage = [column in table.percentages for column in table.columns]
    body = "".join("<tr>" + "".join(map(_cell, row, is_text, is_percentage)) + "</tr>" for row in shown)
    rest = f", first {len(shown):,} shown" if len(shown) < len(table.rows) else ""
    note = f"{counted(len(table.rows), 'row')}{rest} · {TABLES}/{file_name(section, name)}.csv"
    is_open = len(table.rows) <= MAX_OPEN_ROWS or (len(section.tables) == 1 and not section.figures)
    title = table.title or name.replace("_", " ").capitalize()
    return (
        f"<details{' open' if is_open else ''}><summary>{escape(title)} <small>{note}</small></summary>"
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>'
    )


def _heading(column: str) -> str:
    """Return a column name for display; formulas such as ``log2(p_pred / p_gold)`` stay unchanged."""
    return column.replace("_", " ") if column.isidentifier() else column


def _cell(value: Cell, is_text: bool = False, is_percentage: bool = False) -> str:
    """Return a cell of a table; empty cells are aligned like the others of their column.

    >>> _cell(0.51239), _cell(1234), _cell(None), _cell("<b>"), _cell(None, is_text=True)
    ('<td class=n>0.5124</td>', '<td class=n>1,234</td>', '<td class=n>–</td>', '<td>&lt;b&gt;</td>', '<td>–</td>')
    >>> _cell(0.51239, is_percentage=True)
    '<td class=n>51.24</td>'
    """
    if value is None:
        return "<td>–</td>" if is_text else "<td class=n>–</td>"
    if isinstance(value, str):
        shown = value if len(value) <= MAX_CELL_LENGTH else f"{value[:MAX_CELL_LENGTH]}…"
        return f"<td>{escape(shown)}</td>"
    if is_percentage:
        return f"<td class=n>{percent(value)}</td>"
    if isinstance(value, int):
        return f"<td class=n>{value:,}</td>"
    return f"<td class=n>{value:.4f}</td>" if 0.001 <= abs(value) < 1000 or value == 0 else f"<td class=n>{value:.3g}</td>"


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
