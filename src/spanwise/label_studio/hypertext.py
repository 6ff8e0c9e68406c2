"""The text of a task, and its offsets as Label Studio counts them in HTML.

Label Studio shows the HTML of a task in a frame and counts the characters of the text nodes of its
body (``globalOffsets``). White space stays as it is, and ``<br>`` is one character. Paragraphs and other
blocks are not separated there: ``<p>one</p><p>two</p>`` is ``onetwo``. For sentences and words, a line end
is inserted between them here, which Label Studio does not count.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from html.parser import HTMLParser

from spanwise.core.types import Span

_HEAD_TAGS = {"title", "style", "meta", "link", "base"}  # part of the head if they come before the body
_NO_TEXT = {"html", "head", "body"}
_RAW = {"style", "title"}  # their text is counted in the body, but not shown
_BLOCKS = frozenset(
    "address article aside blockquote caption dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 "
    "header hr li main nav ol p pre section summary table tbody td tfoot th thead tr ul".split()
)


@dataclass(frozen=True)
class TaskText:
    """A text; before the characters ``inserted`` of Label Studio's text, it has a line end that is not counted there.

    >>> text = html_text("<p>one</p><p>two</p>")
    >>> text.text, text.to_label_studio(Span(4, 7)), text.from_label_studio(Span(3, 6)), text.from_label_studio(Span(0, 3))
    ('one\\ntwo', Span(start=3, end=6), Span(start=4, end=7), Span(start=0, end=3))
    """

    text: str
    inserted: tuple[int, ...] = ()

    def to_label_studio(self, span: Span) -> Span:
        """Convert characters of ``text``, which do not start or end with an inserted line end."""
        shifted = [position + count for count, position in enumerate(self.inserted)]
        return Span(span.start - bisect_left(shifted, span.start), span.end - bisect_left(shifted, span.end))

    def from_label_studio(self, span: Span) -> Span:
        return Span(span.start + bisect_right(self.inserted, span.start), span.end + bisect_left(self.inserted, span.end))


class _BodyText(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.length = 0  # as Label Studio counts it
        self.inserted: list[int] = []
        self._is_body = False
        self._is_new_block = False
        self._skips_line_end = False  # the first one in <pre>
        self._open: list[str] = []  # the tags of the head, style and script around the text

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in ("head", "script", *_RAW):
            self._open.append(tag)
        if tag == "body" or (tag not in _NO_TEXT | _HEAD_TAGS | {"script"} and "head" not in self._open):
            self._is_body = True
        if tag == "br" and self._is_body:
            self._add("\n")
        self._is_new_block |= tag in _BLOCKS
        self._skips_line_end = tag in ("pre", "listing", "textarea")

    def handle_endtag(self, tag: str) -> None:
        self._skips_line_end = False
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]
        self._is_body |= tag == "head"
        self._is_new_block |= tag in _BLOCKS

    def handle_data(self, data: str) -> None:
        if self._skips_line_end:
            data, self._skips_line_end = data.removeprefix("\n"), False
        if not self._is_body and not self._open:
            data = data.lstrip()  # white space before the body belongs to no element of it
            self._is_body = bool(data)
        if data and self._is_body and not {"head", "script"} & set(self._open):
            self._add(" " * len(data) if self._open else data)

    def _add(self, text: str) -> None:
        if self._is_new_block and self.pieces and not self.pieces[-1][-1].isspace() and not text[0].isspace():
            self.pieces.append("\n")
            self.inserted.append(self.length)
        self._is_new_block = False
        self.pieces.append(text)
        self.length += len(text)


def html_text(html: str) -> TaskText:
    """Return the text of HTML; style sheets inside it are spaces, so that offsets after them are correct.

    >>> html_text("<p>Bonn &amp;<br><b>Paris</b></p><style>p {}</style>").text
    'Bonn &\\nParis    '
    """
    parser = _BodyText()
    parser.feed(html.replace("\r\n", "\n").replace("\r", "\n"))
    parser.close()
    return TaskText("".join(parser.pieces), tuple(parser.inserted))
