"""Drawings in notebooks: sentences and predictions as HTML."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
import tiny

from spanwise.core.types import Entity, Relation, Sentence, SentenceList
from spanwise.drawing.notebook import MAX_SENTENCES
from spanwise.prediction.predictor import Predictor

if TYPE_CHECKING:
    from browser import Browser

NESTED = Sentence(
    "s",
    ("governor", "of", "the", "Bank", "of", "Ghana", "<script>alert(1)</script>"),
    entities=(Entity("Role", ((0, 6),)), Entity("Organization", ((3, 6),)), Entity("Place & more", ((5, 6),), 0.5)),
    relations=(Relation("located_in", 1, 2),),
)


class Tags(HTMLParser):
    """The names of all tags, and the text outside of style sheets."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += "" if self.lasttag == "style" and "{" in data else data


def test_a_sentence_is_drawn_with_nested_entities_and_escaped_text() -> None:
    html = NESTED._repr_html_()
    tags = Tags(html)
    assert "script" not in tags.names
    assert "<script>alert(1)</script>" in tags.text
    assert "Place &amp; more: Ghana (0.500)" in html
    for level in (1, 2):  # the outer entities are below the inner one
        assert f"--l:{level}" in html
    assert len({part.split(";")[0].split('"')[0] for part in html.split('style="--c:')[1:]}) == 3  # a colour for each type
    assert "<b><bdi>located_in</bdi></b>" in html


def test_the_types_of_a_list_have_the_same_colours_in_all_sentences() -> None:
    sentences = SentenceList([NESTED, Sentence("t", ("Ghana",), entities=(Entity("Role", ((0, 1),)),))])
    first, second = sentences._repr_html_().split("<p>")[1:]
    colour = first.split('title="Role')[0].rsplit("--c:", 1)[1][:7]
    assert f"--c:{colour}" in second


def test_long_lists_are_cut() -> None:
    html = SentenceList([NESTED] * (MAX_SENTENCES + 1200))._repr_html_()
    assert html.count("class=drawn") == MAX_SENTENCES
    assert "1,200 more sentences" in html


def test_predictions_are_a_list_that_notebooks_draw() -> None:
    predictions = Predictor(tiny.model("static"), "cpu").predict(list(tiny.sentences(9)))
    assert isinstance(predictions, list)
    assert predictions._repr_html_().count("class=drawn") == 9


@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_draws_one_bar_level_per_nested_entity(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, dark: bool
) -> None:
    path = tmp_path_factory.mktemp("cell") / "cell.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><body>{NESTED._repr_html_()}", encoding="utf-8")
    page = browser.open(path.as_uri(), width=500, height=200, dark=dark)
    tops = page.evaluate("[...document.querySelectorAll('i.a')].map(bar => Math.round(bar.getBoundingClientRect().top))")
    assert len(set(tops)) == 3
    assert not page.errors
