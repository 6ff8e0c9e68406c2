"""Sentences of the base data in the texts of tasks, which may be divided into other words and sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from spanwise.core.other_words import move_entity, place_of, without_whitespace, word_places
from spanwise.core.types import Entity, Sentence


def find_base_sentences(
    sentences: Sequence[Sentence], texts: Collection[str], longest: int
) -> Iterator[tuple[str | None, Sequence[Sentence]]]:  # fmt: skip
    """Yield the sentences of a task in groups: those that together form one of ``texts``, and the others alone.

    ``texts`` have no white space, and ``longest`` is the length of the longest. The longest match counts. A
    sentence that is in no text is yielded with None.

    >>> task = [Sentence("1", ("Ann",)), Sentence("2", ("left",)), Sentence("3", ("early",))]
    >>> [(text, len(part)) for text, part in find_base_sentences(task, {"Annleft"}, 7)]
    [('Annleft', 2), (None, 1)]
    """
    pieces = [without_whitespace(sentence.text) for sentence in sentences]
    start = 0
    while start < len(pieces):
        match, end, text = None, start + 1, ""
        for index in range(start, len(pieces)):
            text += pieces[index]
            if len(text) > longest:
                break
            if text in texts:
                match, end = text, index + 1
        yield match, sentences[start:end]
        start = end


def move_entities(original: Sentence, sentences: Sequence[Sentence]) -> Iterator[list[Entity | None]]:
    """Yield for each of ``sentences`` the entities of the original over its words; None for those that are not inside.

    Together, the sentences have the text of the original.

    >>> original = Sentence("s", ("Ann-Lee", "left."), (Entity("Person", ((0, 1),)),))
    >>> [[entity]] = move_entities(original, [Sentence("t", ("Ann", "-", "Lee", "left", "."))])
    >>> entity.fragments
    (Span(start=0, end=3),)
    """
    old_places, start = word_places(original), 0
    for sentence in sentences:
        new_places, end = word_places(sentence, start), start + len(without_whitespace(sentence.text))
        yield [
            move_entity(entity, old_places, new_places) if start <= place.start and place.end <= end else None
            for entity in original.entities
            for place in (place_of(entity, old_places),)
        ]
        start = end
