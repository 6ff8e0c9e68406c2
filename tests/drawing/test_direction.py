"""Sentences from right to left: a browser puts words with bars in the same order as words without."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spanwise.core.types import Entity, Sentence
from spanwise.drawing import css, draw_sentence, page_head

if TYPE_CHECKING:
    from browser import Browser

TEXTS = (
    "ذهب محمد علي إلى جامعة القاهرة في مصر .",
    "דוד כהן גר בתל אביב 12",
    "קניתי את New York Times אתמול",
    "In Oslo , محمد علي met Bob .",
    "1 . שלום Bob",
)
# The left edges of the words in the text of an element, without the names of types.
EDGES = """(root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), edges = [];
    while (walker.nextNode()) {
        const node = walker.currentNode;
        if (node.parentNode.closest('em')) continue;
        for (const word of node.data.matchAll(/\\S+/g)) {
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            edges.push(range.getBoundingClientRect().left);
        }
    }
    return edges;
}"""
# For each entity: whether its name is between the first and the last edge of its bar.
NAMES = """[...document.querySelectorAll('.bars em')].map(name => {
    const level = name.parentNode.style.getPropertyValue('--c');
    const pieces = [...name.closest('.bars').querySelectorAll('i')].filter(i => i.style.getPropertyValue('--c') === level);
    const boxes = pieces.map(piece => piece.getBoundingClientRect()), box = name.getBoundingClientRect();
    return box.left >= Math.min(...boxes.map(b => b.left)) - 1 && box.right <= Math.max(...boxes.map(b => b.right)) + 1;
})"""


def order(edges: list[float]) -> list[int]:
    return sorted(range(len(edges)), key=lambda index: edges[index])


def test_words_with_bars_keep_the_order_of_the_text(browser: Browser, tmp_path: Path) -> None:
    drawn = []
    for text in TEXTS:
        words = tuple(text.split())
        for entities in (
            [Entity("Organization", ((index, index + 1),)) for index in range(len(words))],
            [Entity("Location", ((0, 2),)), Entity("Organization", ((len(words) - 2, len(words)),))],
        ):
            sentence = Sentence("s", words, tuple(entities))
            drawn.append(f"<p dir=auto>{text}</p><div class=bars>{draw_sentence(sentence)}</div>")
    file = tmp_path / "page.html"
    file.write_text(f"{page_head('t', css())}<body>{''.join(drawn)}</body></html>", encoding="utf-8")
    page = browser.open(file.as_uri())
    plain, bars = (page.evaluate(f"[...document.querySelectorAll('{name}')].map({EDGES})") for name in ("p", ".bars"))
    assert [order(edges) for edges in bars] == [order(edges) for edges in plain]


def test_names_are_next_to_the_words_of_their_entity(browser: Browser, tmp_path: Path) -> None:
    words = tuple(TEXTS[0].split())
    colours = {"Person": "#111111", "Organization": "#222222", "Location": "#333333"}
    entities = (Entity("Person", ((1, 3),)), Entity("Organization", ((4, 6),)), Entity("Location", ((7, 8),)))
    file = tmp_path / "page.html"
    drawing = f"<div class=bars>{draw_sentence(Sentence('s', words, entities), colours)}</div>"
    file.write_text(f"{page_head('t', css())}<body>{drawing}</body></html>", encoding="utf-8")
    assert browser.open(file.as_uri()).evaluate(NAMES) == [True, True, True]


@pytest.mark.parametrize(
    ("text", "direction", "words"),
    [("in Oslo", None, []), ("אב b 1", "rtl", ["rtl", "ltr", "rtl"]), ("b אב ,", None, ["ltr", "rtl", "ltr"])],
)
def test_directions_are_those_of_the_first_letters(text: str, direction: str | None, words: list[str]) -> None:
    sentence = Sentence("s", tuple(text.split()), (Entity("X", ((0, len(text.split())),)),))
    drawn = draw_sentence(sentence)
    assert drawn.startswith("<span class=drawn dir=rtl>" if direction else "<span class=drawn>")
    assert [piece[:3] for piece in drawn.split("<span class=")[1:] if piece[:3] in ("rtl", "ltr")] == words
