"""Move entities between two sentences with the same text that is split into different words.

Texts are compared without white space, because a format may store words only. The place of a word is the
range of its characters in the text without white space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spanwise.core.annotations import Entity, Span
from spanwise.core.sentence import Sentence


def without_whitespace(text: str) -> str:
    """Remove all white space, so that texts that are split into different words become equal.

    >>> without_whitespace("NF - kappa B\\n")
    'NF-kappaB'
    """
    return "".join(text.split())


def word_places(sentence: Sentence, offset: int = 0) -> list[Span]:
    """The place of each word in the text without white space, in which the sentence starts at ``offset``.

    >>> word_places(Sentence("s", ("Ann", "left")))
    [Span(start=0, end=3), Span(start=3, end=7)]
    """
    places, position, count = [], 0, offset
    for start, end in sentence.offsets:
        count += len(without_whitespace(sentence.text[position:start]))
        width = len(without_whitespace(sentence.text[start:end]))
        places.append(Span(count, count + width))
        count, position = count + width, end
    return places


def place_of(entity: Entity, places: Sequence[Span]) -> Span:
    """The characters from the first to the last word of an entity, from the places of all words."""
    start, end = entity.range
    return Span(places[start].start, places[end - 1].end)


def move_entity(entity: Entity, old_places: Sequence[Span], new_places: Sequence[Span]) -> Entity | None:
    """The entity over the new words that its characters touch; None if it touches none.

    ``old_places`` and ``new_places`` are the places of all old and all new words.

    >>> moved = move_entity(Entity("Drug", ((1, 2),)), [Span(0, 3), Span(3, 9)], [Span(0, 3), Span(3, 5), Span(5, 9)])
    >>> moved.fragments
    (Span(start=1, end=3),)
    """
    parts = [Span(old_places[start].start, old_places[end - 1].end) for start, end in entity.fragments]
    touched = [index for index, place in enumerate(new_places) if any(place.overlaps(part) for part in parts)]
    return replace(entity, fragments=tuple(Span(index, index + 1) for index in touched)) if touched else None
