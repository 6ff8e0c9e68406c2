"""An SVG file as a piece of an HTML page that follows the page's theme and mentions no address."""

from __future__ import annotations

import re

from spanwise.analysis.figures.style import GRID, INK, MUTED, PAPER

# What is no datum takes the colours of the page.
_THEME = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--line)", PAPER: "var(--card)"}


def inline_svg(svg: str, prefix: str, label: str) -> str:
    """The ``<svg>`` element alone, in which names begin with ``prefix`` so that several figures can share a page.

    ``label`` is for those who cannot see it, and must be escaped. HTML needs no namespaces, which are addresses.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->\s*", "", body, flags=re.DOTALL)  # matplotlib comments on each text
    body = re.sub(r"<[^>]*>", lambda tag: _on_a_page(tag[0], prefix), body)  # what stands between tags is for the reader
    body = re.sub(r"\s*\n\s*", "\n", body)
    return body.replace("<svg", f'<svg role="img" aria-label="{label}"', 1).strip()


def _on_a_page(tag: str, prefix: str) -> str:
    tag = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", tag)
    tag = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", tag)
    for colour, variable in _THEME.items():
        tag = tag.replace(colour, variable)
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", tag)  # a hundredth of a point is not seen
