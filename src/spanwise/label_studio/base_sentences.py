"""Sentences of the base data in the texts of tasks, which may be divided into other words and sentences.

Label Studio stores texts without words. Texts are therefore compared without white space, and the place of
a word is that of its characters among all others that are not white space.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from spanwise.core.types import Entity, Sentence, Span


def compact(text: str) -> str:
    """The text without white space.

    >>> compact("Ann  left. ")
    'Annleft.'
    """
    return "".join(text.split())


def find_base_sentences(
    sentences: Sequence[Sentence], texts: Collection[str], longest: int
) -> Iterator[tuple[str | None, Sequence[Sentence]]]:  # fmt: skip
    """Divide the sentences of a task into those that form one of ``texts`` together, and single others.

    ``texts`` are compact, and ``longest`` is the length of the longest. The longest match counts; sentences
    that are in no text come with None.

    >>> task = [Sentence("1", ("Ann",)), Sentence("2", ("left",)), Sentence("3", ("early",))]
    >>> [(text, len(part)) for text, part in find_base_sentences(task, {"Annleft"}, 7)]
    [('Annleft', 2), (None, 1)]
    """
    pieces = [compact(sentence.text) for sentence in sentences]
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


def move_entity(entity: Entity, original: Sequence[Span], words: Sequence[Span]) -> Entity | None:
    """The entity over other words, those that its characters touch; None if some of its characters have none.

    ``original`` and ``words`` are the places of the words before and after.

    >>> move_entity(Entity("Drug", ((1, 2),)), [Span(0, 3), Span(3, 9)], [Span(0, 3), Span(3, 5), Span(5, 9)])
    Entity(type='Drug', fragments=(Span(start=1, end=3),), score=None)
    """
    fragments = []
    for first, last in entity.fragments:
        place = Span(original[first].start, original[last - 1].end)
        touched = [index for index, other in enumerate(words) if other.overlaps(place)]
        if not touched or words[touched[0]].start > place.start or words[touched[-1]].end < place.end:
            return None
        fragments.append(Span(touched[0], touched[-1] + 1))
    if any(one.end > two.start for one, two in pairwise(fragments)):  # two fragments of one word
        return None
    return replace(entity, fragments=tuple(fragments))


def word_places(sentence: Sentence, offset: int = 0) -> list[Span]:
    """The place of each word in the compact text, which begins at ``offset``.

    >>> word_places(Sentence("s", ("Ann", "left")))
    [Span(start=0, end=3), Span(start=3, end=7)]
    """
    places, position, count = [], 0, offset
    for start, end in sentence.offsets:
        count += len(compact(sentence.text[position:start]))
        width = len(compact(sentence.text[start:end]))
        places.append(Span(count, count + width))
        count, position = count + width, end
    return places
