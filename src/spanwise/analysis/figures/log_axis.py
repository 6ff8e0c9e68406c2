"""A logarithmic axis whose numbers are plain text: formulas are switched off in these figures, for names may have a "$"."""

from __future__ import annotations

from math import log10

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter


def log_axis(axes: Axes) -> None:
    """Make the vertical axis logarithmic; to be called when the data is drawn, for a short axis has more numbers."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if log10(high / low) > 2 else (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
