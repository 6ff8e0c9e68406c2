"""Sentences whose words are single characters, as in Chinese corpora. Whitespace is a word, too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from spanwise.core.counting import counted
from spanwise.core.types import Entity, Extra, Sentence
from spanwise.formats.base import Ledger


def character_sentence(id: str, text: str, entities: Iterable[Entity], extra: Extra | None = None) -> Sentence:
    """Return a sentence with one word per character.

    >>> character_sentence("s1", "去 北京", [Entity("Place", ((2, 4),))]).words
    ('去', ' ', '北', '京')
    """
    return Sentence(id, tuple(text), tuple(entities), text=text, starts=tuple(range(len(text))), extra=extra)


def slice_text(text: str, start: int, end: int) -> str:
    """Return a non-empty slice of a text; raise ValueError if it is out of range.

    >>> slice_text("去北京", 1, 3)
    '北京'
    """
    if not 0 <= start < end <= len(text):
        raise ValueError(f"characters {start} to {end} are outside the text of {counted(len(text), 'character')}")
    return text[start:end]


def split_characters(sentence: Sentence, ledger: Ledger) -> Sentence:
    """Return the sentence with one word per character of its text; entities keep their text.

    >>> s = split_characters(Sentence("s1", ("to", "Oslo"), (Entity("Place", ((1, 2),)),)), Ledger())
    >>> s.words, s.entities[0].fragments
    (('t', 'o', ' ', 'O', 's', 'l', 'o'), (Span(start=3, end=7),))
    """
    text = sentence.text
    if len(sentence.words) == len(text):
        return sentence
    ledger.note("words split into characters", sum(len(word) > 1 for word in sentence.words))
    entities = tuple(
        replace(entity, fragments=tuple(sentence.characters(fragment) for fragment in entity.fragments))
        for entity in sentence.entities
    )
    return replace(sentence, words=tuple(text), entities=entities, starts=tuple(range(len(text))), pos=None)
