"""Figures of annotated sentences, drawn by Spanwise itself.

A JSON block after ``<!-- drawn: CAPTION -->`` is a sentence in the interchange format; the site shows its
drawing instead. With the key ``predicted``, a list of entities, gold is drawn above the words and
predictions below.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

from spanwise.core.types import Entity, Sentence
from spanwise.drawing import css, draw_sentence

DRAWN = re.compile(r"<!-- drawn: (.+?) -->\n+```json\n(.+?)```", re.DOTALL)


def on_page_markdown(markdown: str, **options: Any) -> str:
    """Replace the marked blocks of a page by figures."""
    drawn, count = DRAWN.subn(lambda match: _figure(match[1], json.loads(match[2])), markdown)
    return f"{drawn}\n<style>{css()}</style>\n" if count else markdown


def _figure(caption: str, record: dict[str, Any]) -> str:
    sentence = Sentence("figure", tuple(record["tokens"]), entities=_entities(record["entities"]))
    predicted = _entities(record["predicted"]) if "predicted" in record else None
    drawing = draw_sentence(sentence, predicted=predicted)
    return f'<figure class="sentence">{drawing}<figcaption>{escape(caption)}</figcaption></figure>'


def _entities(records: list[dict[str, Any]]) -> tuple[Entity, ...]:
    return tuple(Entity(record["type"], tuple(map(tuple, record["spans"]))) for record in records)
