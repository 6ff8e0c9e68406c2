"""The drawing that pages make by themselves is the drawing that Python makes."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sample_predictions import SCRIPT, entity

from spanwise.core.types import Entity, Sentence
from spanwise.drawing import css, draw_sentence, script, type_colours

if TYPE_CHECKING:
    from browser import Browser

TYPES = ("X", "A long name of a type, longer than can be", "医院", "New")
WORDS = ("a", "of", "Hospital", "北", "京", "🌊", "<b>", "&amp;", ".", "(", "”")

# What can be seen of a drawing: the text, and for each word with bars its width, its levels and its bars with their names.
SEEN = """(root) => [root.textContent, ...[...root.querySelectorAll('.w')].map(word => [
    word.style.minWidth, word.style.getPropertyValue('--d'), word.closest('.o') !== null,
    ...[...word.querySelectorAll('i')].map(bar => [bar.className, bar.style.getPropertyValue('--c'), bar.style.getPropertyValue('--l'), bar.textContent])
])]"""


def sample(numbers: random.Random) -> Sentence:
    words = tuple(numbers.choices(WORDS, k=10))
    text = "".join(word + numbers.choice((" ", "", " \n ")) for word in words)
    entities = {}
    for _ in range(numbers.randint(0, 6)):
        places = sorted(numbers.sample(range(11), 4))
        broken = numbers.random() < 0.3
        spans = ((places[0], places[1]), (places[2], places[3])) if broken else ((places[0], places[3]),)
        one = entity(numbers.choice(TYPES), *spans, score=0.25)
        entities[one] = one
    return Sentence("s", words, tuple(entities), text=text, start=7)


def as_answered(sentence: Sentence) -> dict[str, Any]:
    pytest.importorskip("fastapi")
    from spanwise.serve.responses import to_json

    return to_json(sentence)


def test_both_draw_the_same(browser: Browser, tmp_path: Path) -> None:
    numbers = random.Random(5)
    several = [sample(numbers) for _ in range(60)]
    several.append(replace(several[0], words=(SCRIPT, "x"), text="", starts=(), entities=(Entity("X", ((0, 1),)),)))
    colours = type_colours(TYPES[:3])
    page_file = tmp_path / "page.html"
    data = json.dumps([as_answered(sentence) for sentence in several]).replace("<", "\\u003c")
    drawn = "".join(f"<div>{draw_sentence(sentence, colours)}</div>" for sentence in several)
    code = f"const sentences = {data}, colours = {json.dumps(colours)};"
    page_file.write_text(f"<!doctype html><meta charset=utf-8><style>{css()}</style>{drawn}<script>{script()}{code}</script>")
    page = browser.open(page_file.as_uri())
    assert page.errors == []
    theirs = page.evaluate(f"[...document.querySelectorAll('body > div')].map(x => x.firstChild).map({SEEN})")
    own = page.evaluate(f"sentences.map(one => drawSentence(one, colours)).map({SEEN})")
    assert own == theirs
    assert sum(len(one) - 1 for one in theirs) > 200, "words with bars were compared"


def test_the_script_asks_for_nothing() -> None:
    assert not re.search(r"fetch|import|http|innerHTML|eval", script())
