"""Logarithmic axis with plain numbers; math text is disabled in these figures because names may contain "$"."""

from __future__ import annotations

from math import log10

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter


def log_axis(axes: Axes) -> None:
    """Make the vertical axis logarithmic. Call it after drawing the data, whose range decides the number of ticks."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if log10(high / low) > 2 else (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
