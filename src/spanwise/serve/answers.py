"""What is found, as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spanwise.core.types import Sentence, Span


def to_answer(results: Iterable[Iterable[Sentence]]) -> dict[str, Any]:
    """The answer to a request: for each of its texts, the sentences."""
    return {"results": [{"sentences": [to_json(sentence) for sentence in sentences]} for sentences in results]}


def to_json(sentence: Sentence) -> dict[str, Any]:
    """A sentence with what is found in it; characters are those of the text that it was cut from.

    >>> from spanwise.core.types import Entity
    >>> to_json(Sentence("s", ("in", "Oslo"), (Entity("Place", ((1, 2),), 0.9),), start=7))["entities"]
    [{'type': 'Place', 'text': 'Oslo', 'score': 0.9, 'characters': [[10, 14]], 'spans': [[1, 2]]}]
    """
    start = sentence.start or 0

    def shifted(characters: Span) -> list[int]:
        return [start + characters.start, start + characters.end]

    return {
        "start": start,
        "end": start + len(sentence.text),
        "text": sentence.text,
        "words": [shifted(place) for place in sentence.offsets],
        "entities": [
            {
                "type": entity.type,
                "text": sentence.text_of(entity),
                "score": entity.score,
                "characters": [shifted(sentence.characters(fragment)) for fragment in entity.fragments],
                "spans": [list(fragment) for fragment in entity.fragments],
            }
            for entity in sentence.entities
        ],
        "relations": [
            {"type": relation.type, "head": relation.head, "tail": relation.tail, "score": relation.score}
            for relation in sentence.relations
        ],
    }
