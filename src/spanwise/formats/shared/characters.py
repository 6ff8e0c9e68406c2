"""Sentences whose words are the characters of a text, as Chinese corpora have them. White space is a word like any other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spanwise.core.types import Entity, Extra, Sentence, Span
from spanwise.formats.base import Ledger


def of_characters(id: str, text: str, entities: Iterable[Entity], extra: Extra | None = None) -> Sentence:
    """A sentence with a word for each character.

    >>> of_characters("s1", "去 北京", [Entity("Place", ((2, 4),))]).words
    ('去', ' ', '北', '京')
    """
    return Sentence(id, tuple(text), tuple(entities), text=text, starts=tuple(range(len(text))), extra=extra)


def mention(text: str, start: int, end: int) -> str:
    """What stands at a range of characters, which must lie in the text.

    >>> mention("去北京", 1, 3)
    '北京'
    """
    if not 0 <= start < end <= len(text):
        raise ValueError(f"the characters {start} to {end} do not lie in the text, which has {len(text)}")
    return text[start:end]


def to_characters(sentence: Sentence, ledger: Ledger) -> Sentence:
    """The sentence with its words cut into characters, and what stands between them as words too; entities stay in place.

    >>> s = to_characters(Sentence("s1", ("to", "Oslo"), (Entity("Place", ((1, 2),)),)), Ledger())
    >>> s.words, s.entities[0].fragments
    (('t', 'o', ' ', 'O', 's', 'l', 'o'), (Span(start=3, end=7),))
    """
    text = sentence.text
    if len(sentence.words) == len(text):
        return sentence
    ledger.note("words of several characters, cut into characters", sum(len(word) > 1 for word in sentence.words))
    entities = tuple(replace(entity, fragments=_characters(sentence, entity)) for entity in sentence.entities)
    return replace(sentence, words=tuple(text), entities=entities, starts=tuple(range(len(text))), pos=None)


def _characters(sentence: Sentence, entity: Entity) -> tuple[Span, ...]:
    return tuple(sentence.characters(fragment) for fragment in entity.fragments)
