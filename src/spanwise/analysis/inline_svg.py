"""Embed an SVG file in an HTML page."""

from __future__ import annotations

import re

from spanwise.analysis.figures.style import GRID, INK, MUTED, PAPER

# Text, axes and background take the colours of the page's theme.
_THEME = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--line)", PAPER: "var(--card)"}


def inline_svg(svg: str, prefix: str, label: str) -> str:
    """Return the ``<svg>`` element, with ``prefix`` before all ids so that figures do not share them.

    ``label`` describes the figure for screen readers and must be escaped. Namespaces are removed:
    HTML does not need them, and they are URLs.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.DOTALL)  # matplotlib adds a comment to each text
    body = re.sub(r"<[^>]*>", lambda tag: _adapt_tag(tag[0], prefix), body)  # text between tags stays unchanged
    body = re.sub(r"\s*\n\s*", "\n", body)
    return body.replace("<svg", f'<svg role="img" aria-label="{label}"', 1).strip()


def _adapt_tag(tag: str, prefix: str) -> str:
    tag = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", tag)
    tag = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", tag)
    for colour, variable in _THEME.items():
        tag = tag.replace(colour, variable)
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", tag)  # 0.01 pt is precise enough
