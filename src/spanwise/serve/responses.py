"""Predictions as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spanwise.core.types import Sentence, Span


def to_response(results: Iterable[Iterable[Sentence]]) -> dict[str, Any]:
    """The response to a request: the sentences of each text."""
    return {"results": [{"sentences": [to_json(sentence) for sentence in sentences]} for sentences in results]}


def to_json(sentence: Sentence) -> dict[str, Any]:
    """A sentence with its predictions; character offsets refer to the whole text.

    >>> from spanwise.core.types import Entity
    >>> to_json(Sentence("s", ("in", "Oslo"), (Entity("Place", ((1, 2),), 0.9),), start=7))["entities"]
    [{'type': 'Place', 'text': 'Oslo', 'score': 0.9, 'characters': [[10, 14]], 'spans': [[1, 2]]}]
    """
    start = sentence.start or 0

    def shift(characters: Span) -> list[int]:
        return [start + characters.start, start + characters.end]

    return {
        "start": start,
        "end": start + len(sentence.text),
        "text": sentence.text,
        "words": [shift(characters) for characters in sentence.offsets],
        "entities": [
            {
                "type": entity.type,
                "text": sentence.text_of(entity),
                "score": entity.score,
                "characters": [shift(sentence.characters(fragment)) for fragment in entity.fragments],
                "spans": [list(fragment) for fragment in entity.fragments],
            }
            for entity in sentence.entities
        ],
        "relations": [
            {"type": relation.type, "head": relation.head, "tail": relation.tail, "score": relation.score}
            for relation in sentence.relations
        ],
    }
