"""Check the built site: every internal link leads to a page and an anchor, and no page loads anything from a server."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

EXTERNAL = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
NOT_FOUND = "404.html"  # shown at any address, so its links are absolute

log = logging.getLogger("mkdocs.hooks.links")


def on_post_build(config: Any, **options: Any) -> None:
    """Warn of each problem; in strict mode, a warning fails the build."""
    for problem in check_site(Path(config["site_dir"])):
        log.warning(problem)


def check_site(site: Path) -> Iterator[str]:
    """Yield the dead links of a site, and the resources that it would load from servers."""
    pages = {path: _Page(path) for path in sorted(site.rglob("*.html")) if path.name != NOT_FOUND}
    for path, page in pages.items():
        name = path.relative_to(site)
        for resource in page.resources:
            if EXTERNAL.match(resource) and not resource.startswith("data:"):
                yield f"{name} loads {resource}"
            elif not EXTERNAL.match(resource) and not _target(path, resource).exists():
                yield f"{name} loads {resource}, which does not exist"
        for link in page.links:
            if EXTERNAL.match(link):
                continue
            target, anchor = _target(path, link), unquote(link.partition("#")[2])
            if not target.exists():
                yield f"{name} links to {link}, which does not exist"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{name} links to {link}, but there is no such anchor"


def _target(page: Path, link: str) -> Path:
    """Return the file that a link of a page leads to."""
    path = unquote(re.split("[?#]", link)[0])
    target = (page.parent / path).resolve() if path else page
    return target / "index.html" if target.is_dir() else target


class _Page(HTMLParser):
    """The links, resources and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag in ("link", "use"):
            self.resources += (
                [values["href"]] if "href" in values and values.get("rel") not in ("canonical", "next", "prev") else []
            )
        elif "href" in values:
            self.links.append(values["href"])
        if "src" in values:
            self.resources.append(values["src"])
