"""One palette, one set of sizes and one way to begin a figure, so that all figures look like one hand drew them.

A drawing function is decorated with ``@styled`` and begins with ``new_figure``. The colours ``INK``, ``MUTED``, ``GRID`` and
``PAPER`` are for what is no datum (text, axes, background): the report puts the colours of the reader's theme in their place.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Literal, ParamSpec

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from spanwise.drawing.colours import HUES, PALETTE, shortened, type_colours

__all__ = [
    "BETTER", "DIVERGING", "GRID", "HUES", "INK", "LARGEST", "MARKERS", "MUTED", "NEUTRAL", "PALETTE", "PAPER", "ROW",
    "SEQUENTIAL", "WIDTH", "WORSE",
    "ink_on", "label_rows", "new_figure", "saved", "shortened", "styled", "type_colours", "type_markers",
]  # fmt: skip

P = ParamSpec("P")

WIDTH = 7.2  # inches: the width of a page's text
ROW = 0.3  # inches: the height of a bar or of a row of a heat map
LARGEST = 40  # bars or rows beyond which a figure shows the largest only; tables have all
DPI = 144

INK, MUTED, GRID, PAPER = "#1f2430", "#667085", "#d5d9e2", "#fefefe"

MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # 7 and 24 have no common divisor: 168 pairs before one comes again

BETTER, WORSE, NEUTRAL = "#0072b2", "#d55e00", "#98a2b3"
SEQUENTIAL = "Blues"
DIVERGING = "RdBu"  # red below zero, blue above

_SETTINGS: Any = {  # matplotlib types its settings one by one
    "figure.facecolor": PAPER,
    "figure.dpi": DPI,
    "savefig.facecolor": PAPER,
    "savefig.dpi": DPI,
    "font.size": 9,
    "axes.facecolor": PAPER,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "spanwise",
    "text.parse_math": False,  # a type or an entity may be called "$a$"
}

# Fonts for scripts that matplotlib's own font does not have: those that are installed are asked where it has no glyph.
_MORE_FONTS = (
    "Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "Microsoft YaHei", "PingFang SC", "Arial Unicode MS",
)  # fmt: skip


@contextmanager
def _settings() -> Iterator[None]:
    """This style, whatever the settings of matplotlib are, and those again afterwards."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    fonts = ["DejaVu Sans", *(name for name in _MORE_FONTS if name in installed), "sans-serif"]
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")  # a script without a font here: boxes stand for it
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS | {"font.family": fonts})
        yield


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """The drawing function, drawing in this style."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with _settings():
            return draw(*args, **kwargs)

    return drawn


def saved(figure: Figure, format: Literal["png", "svg"]) -> bytes:
    """The figure as a file of that format; the same figure always gives the same bytes."""
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type") if format == "svg" else ("Software",))
    stream = io.BytesIO()
    with _settings():
        figure.savefig(stream, format=format, metadata=nothing)
    return stream.getvalue()


def new_figure(width: float = WIDTH, height: float = 4.0) -> Figure:
    """An empty figure of that many inches; what is put into it is laid out so that nothing overlaps."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def type_markers(types: Sequence[str]) -> dict[str, str]:
    """A marker for each type, in their order."""
    return {type: MARKERS[number % len(MARKERS)] for number, type in enumerate(types)}


def ink_on(colour: Sequence[float]) -> str:
    """Black or white, whichever is easier to read on a colour given as red, green and blue from 0 to 1.

    >>> ink_on((1, 1, 0.8)), ink_on((0, 0.1, 0.4))
    ('black', 'white')
    """
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3])
    return "black" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 else "white"


def label_rows(axes: Axes, labels: Iterable[str]) -> None:
    """The names of the rows of bars or cells at 0, 1, …, the first on top."""
    names = [shortened(label) for label in labels]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
