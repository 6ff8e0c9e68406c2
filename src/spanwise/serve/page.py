"""Web page of the service: one HTML file that sends requests only to its own service."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

from spanwise.decoding.thresholds import MIN_THRESHOLD
from spanwise.drawing import css, page_head, script, type_colours


@dataclass(frozen=True)
class Page:
    """The HTML and its Content-Security-Policy, which blocks code injected by a text or a label."""

    html: str
    policy: str


def make_page(
    title: str,
    types: Sequence[str],
    *,
    threshold: float | None = None,
    saved: Mapping[str, float] | None = None,
    lowest: float = MIN_THRESHOLD,
    has_token: bool = False,
) -> Page:
    """Build the page.

    ``threshold`` is the default of the model's head, None if it has none; ``saved`` are the thresholds by
    type that are saved in the model and replace it. ``lowest`` is the lowest threshold that can be chosen.
    """
    defaults = {type: saved.get(type, threshold or 0.0) for type in types} if saved else {}
    settings = {
        "colours": type_colours(types),
        "threshold": min(defaults.values(), default=threshold or 0.0),
        "defaults": defaults,
        # Above 0, so that the service returns predictions below the saved thresholds, too.
        "lowest": min(lowest, threshold or lowest) if saved or threshold is not None else 0.0,
        "token": has_token,
    }
    style = css() + _asset("page.css")
    code = script() + _asset("page.js")
    html = Template(_asset("page.html")).substitute(
        head=page_head(f"{escape(title)} – Spanwise", style), title=escape(title), js=code,
        settings=json.dumps(settings).replace("<", "\\u003c"),
    )  # fmt: skip
    policy = (
        f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(html, policy)


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
