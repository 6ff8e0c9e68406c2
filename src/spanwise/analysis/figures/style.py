"""Common style of all figures: colours, sizes and matplotlib settings.

Decorate a drawing function with ``@styled`` and create its figure with ``new_figure``. Use ``INK``,
``MUTED``, ``GRID`` and ``PAPER`` for text, axes and background only: the report replaces them by the
colours of its theme.
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

from spanwise.drawing.colours import HUES, PALETTE, truncate_all, type_colours

__all__ = [
    "BETTER", "DIVERGING", "GRID", "HUES", "INK", "MAX_BARS", "MUTED", "NEUTRAL", "PALETTE", "PAPER", "ROW", "SEQUENTIAL",
    "WIDTH", "WORSE", "label_rows", "new_figure", "render", "styled", "text_colour", "truncate_all", "type_colours",
]  # fmt: skip

P = ParamSpec("P")

WIDTH = 7.2  # inches; the text width of a page
ROW = 0.3  # inches; the height of a bar or of a heat map row
MAX_BARS = 40  # bars or rows in a figure; the tables are complete
DPI = 144

INK, MUTED, GRID, PAPER = "#1f2430", "#667085", "#d5d9e2", "#fefefe"

BETTER, WORSE, NEUTRAL = "#0072b2", "#d55e00", "#98a2b3"
SEQUENTIAL = "Blues"
DIVERGING = "RdBu"  # red below zero, blue above

_SETTINGS: Any = {  # matplotlib types each setting separately
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
    "svg.fonttype": "none",  # keep text as text
    "svg.hashsalt": "spanwise",
    "text.parse_math": False,  # names may contain "$"
}

# Fallback fonts, if installed, for scripts that matplotlib's default font lacks.
_FALLBACK_FONTS = (
    "Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "Microsoft YaHei", "PingFang SC", "Arial Unicode MS",
)  # fmt: skip


@contextmanager
def _settings() -> Iterator[None]:
    """Apply this style temporarily, independent of the user's matplotlib settings."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    fonts = ["DejaVu Sans", *(name for name in _FALLBACK_FONTS if name in installed), "sans-serif"]
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")  # drawn as boxes
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS | {"font.family": fonts})
        yield


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a drawing function to use this style."""

    @wraps(draw)
    def draw_styled(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with _settings():
            return draw(*args, **kwargs)

    return draw_styled


def render(figure: Figure, format: Literal["png", "svg"]) -> bytes:
    """Return the figure as a file; equal figures give equal bytes."""
    no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type") if format == "svg" else ("Software",))
    stream = io.BytesIO()
    with _settings():
        figure.savefig(stream, format=format, metadata=no_metadata)
    return stream.getvalue()


def new_figure(width: float = WIDTH, height: float = 4.0) -> Figure:
    """Create an empty figure, sized in inches, with a layout that avoids overlaps."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def text_colour(background: Sequence[float]) -> str:
    """Return black or white, whichever contrasts more with a background of red, green and blue from 0 to 1.

    >>> text_colour((1, 1, 0.8)), text_colour((0, 0.1, 0.4))
    ('black', 'white')
    """
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in background[:3])
    return "black" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 else "white"


def label_rows(axes: Axes, labels: Iterable[str]) -> None:
    """Label the rows of bars or cells at 0, 1, …, the first at the top."""
    names = truncate_all(labels)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
