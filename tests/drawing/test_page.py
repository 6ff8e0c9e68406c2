"""Many sentences on one page."""

from __future__ import annotations

import io
from collections.abc import Iterator
from html.parser import HTMLParser

from spanwise.core.types import Entity, Relation, Sentence, Span
from spanwise.drawing.page import page, write_page

HOSTILE = Sentence(
    "s0", ("<script>alert(1)</script>", "&amp;", "b"), (Entity("<i>", ((0, 1),), 0.5), Entity("Y", ((0, 3),))),  # type: ignore[arg-type]
    (Relation("<b>", 0, 1, 0.25),), document='"d"><h1>',
)  # fmt: skip


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


def test_text_is_never_markup() -> None:
    file = io.StringIO()
    write_page([HOSTILE], file, ["<i>", "Y"], "<title>")
    found = read(file.getvalue())
    assert "script" not in found.tags
    assert found.tags.count("h1") == 1
    assert "<script>alert(1)</script>" in found.text
    assert {'"d"><h1>', "<title>", "<i>", "<b>"} <= set(found.text)


def test_documents_have_headings_and_blank_sentences_nothing() -> None:
    some = [Sentence(f"s{n}", ("a",) if n != 2 else (), document=f"d{n // 3}") for n in range(6)]
    found = read("".join(page(some, {}, "t")))
    assert found.tags.count("h2") == 2
    assert found.tags.count("p") == 5


def test_relations_in_scripts_from_right_to_left_keep_their_order() -> None:
    pair = (Entity("X", (Span(0, 1),)), Entity("X", (Span(1, 2),)))
    found = "".join(page([Sentence("s", ("אב", "b"), pair, (Relation("יש", 0, 1),))], {}, "t"))
    assert "<small><bdi>אב</bdi> <b><bdi>יש</bdi></b> <bdi>b</bdi></small>" in found


def test_it_is_written_as_sentences_come() -> None:
    def endless() -> Iterator[Sentence]:
        while True:
            yield Sentence("s", ("a",))

    pieces = page(endless(), {}, "t")
    assert next(pieces).startswith("<!doctype html>")
    assert "a" in next(pieces)
