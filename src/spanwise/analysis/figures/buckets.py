"""Bar charts of F1 by attribute, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spanwise.analysis.figures.style import HUES, INK, MUTED, PAPER, WIDTH, new_figure, styled
from spanwise.evaluation.buckets import Bucket, BucketRange

COLUMNS = 3  # panels per row
_TEXT_BOX = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.8}


@styled
def buckets_figure(buckets: Mapping[str, Sequence[Bucket]], titles: Mapping[str, str], overall: float) -> Figure:
    """Draw a panel for each attribute; the dashed line is the overall F1."""
    rows = -(-len(buckets) // COLUMNS)
    figure = new_figure(WIDTH * 1.15, 0.4 + 2.1 * rows)
    panels = figure.subplots(rows, COLUMNS, squeeze=False, sharey=True).ravel()
    for axes, (attribute, attribute_buckets) in zip(panels, buckets.items(), strict=False):
        _panel(axes, attribute_buckets, overall)
        axes.set_title(titles[attribute])
    for row in range(rows):
        panels[row * COLUMNS].set_ylabel("F1 (%)")
    for axes in panels[len(buckets) :]:
        axes.remove()
    return figure


def _panel(axes: Axes, buckets: Sequence[Bucket], overall: float) -> None:
    names = []
    for x, bucket in enumerate(buckets):
        names.append(f"{bucket_range(bucket)}\n{bucket.score.support:,}")
        if bucket.is_empty:
            axes.text(x, 3, "none", ha="center", color=MUTED, size=7.5)
            continue
        f1 = top = 100 * bucket.score.f1
        axes.bar(x, f1, width=0.7, color=HUES[0], alpha=0.75)
        if bucket.interval is not None:
            axes.vlines(x, 100 * bucket.interval.low, 100 * bucket.interval.high, color=INK, linewidth=1.3)
            top = max(100 * bucket.interval.high, f1)
        axes.text(x, top + 2, f"{f1:.0f}", ha="center", color=INK, size=8, bbox=_TEXT_BOX)
    axes.axhline(100 * overall, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
    axes.set_xticks(range(len(names)), names, size=7.5)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylim(0, 112)
    axes.set_yticks(range(0, 101, 25))


def bucket_range(bucket: BucketRange) -> str:
    """Format the values of a bucket: integers, or shares in percent.

    >>> edges = [(None, 1), (1, 2), (2, 4), (4, None), (None, 0.0), (0.01, 0.025)]
    >>> [bucket_range(BucketRange("", *edge)) for edge in edges]
    ['≤ 1', '2', '3–4', '> 4', '0%', '1–2.5%']
    """
    low, high = bucket.above, bucket.up_to
    if low is None:
        return bucket.name if high is None else f"≤ {_format(high)}" if high else _format(high)
    if high is None:
        return f"> {_format(low)}"
    if isinstance(low, float):
        first, last = _percents(low, high)
        return f"{first}–{last}%" if first != last else f"{last}%"
    return f"{low + 1:,}–{high:,}" if low + 1 < high else f"{high:,}"


def _format(number: float) -> str:
    return f"{100 * number:.3g}%" if isinstance(number, float) else f"{number:,}"


def _percents(low: float, high: float) -> tuple[str, str]:
    """Format two shares in percent with two digits, or three if two would make them equal or 100."""
    for digits in (2, 3):
        first, last = (f"{float(f'{100 * share:.{digits}g}'):g}" for share in (low, high))
        if first != last and (last != "100" or high == 1):
            break
    return first, last
