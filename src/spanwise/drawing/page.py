"""Write a stream of sentences as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import IO

from spanwise.core.types import Sentence
from spanwise.drawing.colours import type_colours
from spanwise.drawing.page_head import page_head
from spanwise.drawing.sentence import css, draw_sentence


def write_page(sentences: Iterable[Sentence], file: IO[str], types: Sequence[str], title: str) -> None:
    """Write the page to an open file. ``types`` get colours and are listed at the top."""
    colours = type_colours(types)
    file.writelines(page(sentences, colours, title))


def page(sentences: Iterable[Sentence], colours: Mapping[str, str], title: str) -> Iterator[str]:
    """Yield the page in pieces: a heading for each document, and its sentences with entities and relations.

    >>> "<h2>d1</h2>" in "".join(page([Sentence("s", ("Oslo",), document="d1")], {}, "Title"))
    True
    """
    legend = "".join(f'<li style="--c:{colour}">{escape(type)}</li>' for type, colour in colours.items())
    yield (
        f"{page_head(escape(title), css() + _page_css())}<body>\n"
        f'<header><h1>{escape(title)}</h1><ul class="legend" aria-label="Types">{legend}</ul></header>\n<main>\n'
    )
    document: str | None = None
    for sentence in sentences:
        if sentence.document is not None and sentence.document != document:
            yield f"<h2>{escape(sentence.document)}</h2>\n"
        document = sentence.document
        if sentence.words:
            yield f"<p>{draw_sentence(sentence, colours)}{draw_relations(sentence)}</p>\n"
    yield "</main>\n</body>\n</html>\n"


def draw_relations(sentence: Sentence) -> str:
    """Return the relations of a sentence as lines of HTML."""
    rows = []
    for relation in sentence.relations:
        arguments = [sentence.text_of(sentence.entities[index]) for index in (relation.head, relation.tail)]
        head, tail, type = (f"<bdi>{escape(text)}</bdi>" for text in (*arguments, relation.type))
        score = "" if relation.score is None else f' title="{relation.score:.3f}"'
        rows.append(f"<small{score}>{head} <b>{type}</b> {tail}</small>")
    return "".join(rows)


def _page_css() -> str:
    return files(__package__).joinpath("page.css").read_text(encoding="utf-8")
