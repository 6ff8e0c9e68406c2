"""The JavaScript drawing equals the Python drawing."""

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
WORDS = ("a", "of", "Hospital", "北", "京", "🌊", "<b>", "&amp;", ".", "(", "”", "12")
RIGHT_TO_LEFT_WORDS = ("אב", "القاهرة", "𞤀", "(اسم)")

# The text of a drawing, and for each word with bars its width, its levels and its bars with their names.
CONTENT = """(root) => [root.textContent, root.dir, ...[...root.querySelectorAll('.w')].map(word => [
    word.parentNode.className, word.style.minWidth, word.style.getPropertyValue('--d'), word.closest('.o') !== null,
    ...[...word.querySelectorAll('i')].map(bar => [bar.className, bar.style.getPropertyValue('--c'), bar.style.getPropertyValue('--l'), bar.textContent])
])]"""


def sample(numbers: random.Random) -> Sentence:
    words = tuple(numbers.choices((*WORDS, *RIGHT_TO_LEFT_WORDS) if numbers.random() < 0.3 else WORDS, k=10))
    text = "".join(word + numbers.choice((" ", "", " \n ")) for word in words)
    entities = {}
    for _ in range(numbers.randint(0, 6)):
        boundaries = sorted(numbers.sample(range(11), 4))
        is_discontinuous = numbers.random() < 0.3
        spans = (
            ((boundaries[0], boundaries[1]), (boundaries[2], boundaries[3]))
            if is_discontinuous
            else ((boundaries[0], boundaries[3]),)
        )
        added = entity(numbers.choice(TYPES), *spans, score=0.25)
        entities[added] = added
    return Sentence("s", words, tuple(entities), text=text, start=7)


def service_json(sentence: Sentence) -> dict[str, Any]:
    pytest.importorskip("fastapi")
    from spanwise.serve.responses import to_json

    return to_json(sentence)


def test_javascript_draws_what_python_draws(browser: Browser, tmp_path: Path) -> None:
    numbers = random.Random(5)
    sentences = [sample(numbers) for _ in range(60)]
    sentences.append(replace(sentences[0], words=(SCRIPT, "x"), text="", starts=(), entities=(Entity("X", ((0, 1),)),)))
    colours = type_colours(TYPES[:3])
    page_file = tmp_path / "page.html"
    data = json.dumps([service_json(sentence) for sentence in sentences]).replace("<", "\\u003c")
    drawn = "".join(f"<div>{draw_sentence(sentence, colours)}</div>" for sentence in sentences)
    code = f"const sentences = {data}, colours = {json.dumps(colours)};"
    page_file.write_text(f"<!doctype html><meta charset=utf-8><style>{css()}</style>{drawn}<script>{script()}{code}</script>")
    page = browser.open(page_file.as_uri())
    assert page.errors == []
    expected = page.evaluate(f"[...document.querySelectorAll('body > div')].map(x => x.firstChild).map({CONTENT})")
    actual = page.evaluate(f"sentences.map(sentence => drawSentence(sentence, colours)).map({CONTENT})")
    assert actual == expected
    assert sum(len(drawing) - 2 for drawing in expected) > 200, "words with bars were compared"


def test_script_makes_no_requests_and_no_html() -> None:
    assert not re.search(r"fetch|import|http|innerHTML|eval", script())
