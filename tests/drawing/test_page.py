"""HTML pages of sentences."""

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


class PageParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parse(text: str) -> PageParser:
    parser = PageParser()
    parser.feed(text)
    return parser


def test_text_is_escaped() -> None:
    file = io.StringIO()
    write_page([HOSTILE], file, ["<i>", "Y"], "<title>")
    content = parse(file.getvalue())
    assert "script" not in content.tags
    assert content.tags.count("h1") == 1
    assert "<script>alert(1)</script>" in content.text
    assert {'"d"><h1>', "<title>", "<i>", "<b>"} <= set(content.text)


def test_documents_have_headings_and_empty_sentences_are_skipped() -> None:
    sentences = [Sentence(f"s{n}", ("a",) if n != 2 else (), document=f"d{n // 3}") for n in range(6)]
    content = parse("".join(page(sentences, {}, "t")))
    assert content.tags.count("h2") == 2
    assert content.tags.count("p") == 5


def test_right_to_left_relations_keep_their_order() -> None:
    pair = (Entity("X", (Span(0, 1),)), Entity("X", (Span(1, 2),)))
    content = "".join(page([Sentence("s", ("אב", "b"), pair, (Relation("יש", 0, 1),))], {}, "t"))
    assert "<small><bdi>אב</bdi> <b><bdi>יש</bdi></b> <bdi>b</bdi></small>" in content


def test_pages_are_streamed() -> None:
    def endless() -> Iterator[Sentence]:
        while True:
            yield Sentence("s", ("a",))

    pieces = page(endless(), {}, "t")
    assert next(pieces).startswith("<!doctype html>")
    assert "a" in next(pieces)
