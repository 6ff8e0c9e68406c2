"""The text of an HTML document, as Label Studio counts its characters.

Label Studio inserts the HTML of a task into the page and counts the characters of its text nodes
(``globalOffsets``). White space stays as it is, and ``<br>`` is no character. Scripts and styles are
removed before.
"""

from __future__ import annotations

from html.parser import HTMLParser

_HIDDEN = ("script", "style", "head", "title")


class _TextNodes(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN and self._hidden > 0

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(data)


def html_text(html: str) -> str:
    """Return the text of HTML.

    >>> html_text("<p>Bonn &amp; <b>Paris</b></p><style>p {}</style>")
    'Bonn & Paris'
    """
    parser = _TextNodes()
    parser.feed(html)
    parser.close()
    return "".join(parser.pieces)
