"""Document context: the sentences around a sentence, of whatever split. Their words are used, never their labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanwise.core.types import Sentence
from spanwise.encoders.subwords import NONE, Ints


def with_documents(sentences: Sequence[Sentence], context: Sequence[Sentence]) -> list[Sentence]:
    """The sentences, and behind them those of the context that belong to their documents.

    A place in a document is taken once: what stands in ``sentences`` is not taken from the context again.
    """
    documents = {sentence.document for sentence in sentences}
    taken = {(sentence.document, sentence.position) for sentence in sentences}
    found = list(sentences)
    for sentence in context:
        place = (sentence.document, sentence.position)
        if None not in place and sentence.document in documents and place not in taken:
            taken.add(place)
            found.append(sentence)
    return found


def neighbours(sentences: Sequence[Sentence]) -> list[tuple[list[int], int]]:
    """For each sentence the numbers of its document's sentences in order, and its own place among them."""
    documents: dict[str, list[int]] = {}
    result: list[tuple[list[int], int]] = [([number], 0) for number in range(len(sentences))]
    for number, sentence in enumerate(sentences):
        if sentence.document is not None and sentence.position is not None:
            documents.setdefault(sentence.document, []).append(number)
    for members in documents.values():
        members.sort(key=lambda number: (sentences[number].position, number))
        for at, number in enumerate(members):
            result[number] = (members, at)
    return result


def surroundings(pieces: Sequence[Ints], document: Sequence[int], at: int, room: int) -> tuple[Ints, Ints]:
    """Subwords before and behind sentence ``document[at]``: ``room`` in all, evenly where both sides have that many."""
    before = _some([pieces[number][::-1] for number in _nearest(pieces, document[:at][::-1], room)], room)[::-1]
    behind = _some([pieces[number] for number in _nearest(pieces, document[at + 1 :], room)], room)
    left = min(len(before), max(room // 2, room - len(behind)))
    return before[len(before) - left :], behind[: room - left]


def _nearest(pieces: Sequence[Ints], document: Sequence[int], room: int) -> list[int]:
    """As many sentences as it takes to fill the room."""
    found: list[int] = []
    for number in document:
        if room <= 0:
            break
        room -= len(pieces[number])
        found.append(number)
    return found


def _some(pieces: Sequence[Ints], room: int) -> Ints:
    joined: Ints = np.concatenate([NONE, *pieces])
    return joined[: max(room, 0)]
