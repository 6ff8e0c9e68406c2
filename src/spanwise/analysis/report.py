"""An analysis as one HTML file that holds everything it shows and asks for nothing from elsewhere."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

from spanwise.analysis.figures.style import DPI
from spanwise.analysis.inline_svg import inline_svg
from spanwise.analysis.part import Cell, Part, Table
from spanwise.analysis.writing import FIGURES, TABLES, Drawn, file_name
from spanwise.core.version import __version__
from spanwise.drawing import css, head

LARGEST_SVG = 150_000  # letters; a figure of many points is smaller as a picture
MOST_ROWS = 80  # of a table on the page
OPEN_ROWS = 12  # of a table that is shown without a click
LONGEST_CELL = 200


@dataclass(frozen=True)
class Section:
    """A part of the report that is no ``Part``: a heading and HTML whose text is escaped already."""

    name: str
    title: str
    html: str


def report(title: str, cards: Mapping[str, str], parts: Sequence[Part | Section], drawn: Mapping[str, Drawn]) -> str:
    """The whole page. ``cards`` are the few numbers that are shown first."""
    pieces = {
        "title": _text(title),
        "version": _text(__version__),
        "cards": "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in cards.items()),
        "nav": "".join(f'<a href="#{part.name}">{_text(part.title)}</a>' for part in parts),
        "sections": "\n".join(_section(part, drawn) for part in parts),
    }
    # Addresses that stand in the data's text are written so that the file mentions none; a browser shows them all the same.
    plain = {
        name: re.sub("http", lambda found: f"&#{ord(found[0][0])};{found[0][1:]}", piece, flags=re.IGNORECASE)
        for name, piece in pieces.items()
    }
    beginning = head(f"{plain['title']} – analysis", css() + _asset("report.css"))
    return Template(_asset("report.html")).substitute(plain, head=beginning, js=_asset("report.js"))


def _section(part: Part | Section, drawn: Mapping[str, Drawn]) -> str:
    body = part.html if isinstance(part, Section) else _body(part, drawn)
    return f'<section id="{part.name}"><h2>{_text(part.title)}</h2>{body}</section>'


def _body(part: Part, drawn: Mapping[str, Drawn]) -> str:
    figures = "".join(_figure(part, name, drawn[file_name(part, name)]) for name in part.figures)
    tables = "".join(_table(part, name, table) for name, table in part.tables.items() if table.rows)
    text = f'<p class="text">{_text(part.text)}</p>' if part.text else ""
    return f'{text}<div class="figures">{figures}</div>{tables}'


def _figure(part: Part, name: str, drawn: Drawn) -> str:
    label = _text(f"{part.title}: {name.replace('_', ' ')}")
    file = file_name(part, name)
    picture = inline_svg(drawn.svg.decode(), file, label)
    if len(picture) > LARGEST_SVG:
        picture = _picture(drawn.png, label)
    return f"<figure>{picture}<figcaption>{FIGURES}/{file}.png, .svg</figcaption></figure>"


def _picture(png: bytes, label: str) -> str:
    """The picture at the size of the figure, in 256 colours, which are enough for it and a third of the bytes."""
    from PIL import Image  # matplotlib brings it

    image = Image.open(io.BytesIO(png)).convert("RGB")
    stream = io.BytesIO()
    image.quantize(256, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
    data = base64.b64encode(stream.getvalue()).decode()
    return f'<img alt="{label}" width={image.width * 96 // DPI} src="data:image/png;base64,{data}">'


def _table(part: Part, name: str, table: Table) -> str:
    shown = table.rows[:MOST_ROWS]
    are_text = [any(isinstance(value, str) for value in values) for values in zip(*shown, strict=True)]
    head = "".join(
        f"<th{'' if is_text else ' class=n'}>{_text(name.replace('_', ' '))}</th>"
        for name, is_text in zip(table.columns, are_text, strict=True)
    )
    body = "".join("<tr>" + "".join(map(_cell, row, are_text)) + "</tr>" for row in shown)
    rest = f"; the first {len(shown):,} here" if len(shown) < len(table.rows) else ""
    note = f"{len(table.rows):,} row{'s' if len(table.rows) != 1 else ''}{rest} · {TABLES}/{file_name(part, name)}.csv"
    is_open = " open" if len(table.rows) <= OPEN_ROWS or (len(part.tables) == 1 and not part.figures) else ""
    return (
        f"<details{is_open}><summary>{_text(name.replace('_', ' '))} <small>{note}</small></summary>"
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>'
    )


def _cell(value: Cell, is_text: bool = False) -> str:
    """A cell of a table; an empty one stands where those of its column stand, which may be text.

    >>> _cell(0.51239), _cell(1234), _cell(None), _cell("<b>"), _cell(None, is_text=True)
    ('<td class=n>0.5124</td>', '<td class=n>1,234</td>', '<td class=n>–</td>', '<td>&lt;b&gt;</td>', '<td>–</td>')
    """
    if value is None:
        return "<td>–</td>" if is_text else "<td class=n>–</td>"
    if isinstance(value, str):
        cut = value if len(value) <= LONGEST_CELL else f"{value[:LONGEST_CELL]}…"
        return f"<td>{_text(cut)}</td>"
    if isinstance(value, int):
        return f"<td class=n>{value:,}</td>"
    return f"<td class=n>{value:.4f}</td>" if 0.001 <= abs(value) < 1000 or value == 0 else f"<td class=n>{value:.3g}</td>"


def _text(value: str) -> str:
    return escape(value)


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
