"""Document context: the words of the sentences around a sentence, from any split. Labels are never used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanwise.core.types import Sentence
from spanwise.encoders.subwords import NO_SUBWORDS, Ints


def with_context_sentences(sentences: Sequence[Sentence], context: Sequence[Sentence]) -> list[Sentence]:
    """The sentences, followed by the ``context`` sentences of the same documents.

    Each position of a document occurs once; ``sentences`` take precedence over the context.
    """
    documents = {sentence.document for sentence in sentences}
    used = {(sentence.document, sentence.position) for sentence in sentences}
    result = list(sentences)
    for sentence in context:
        position = (sentence.document, sentence.position)
        if None not in position and sentence.document in documents and position not in used:
            used.add(position)
            result.append(sentence)
    return result


def document_positions(sentences: Sequence[Sentence]) -> list[tuple[list[int], int]]:
    """For each sentence, the indices of its document's sentences in order, and its own position among them."""
    documents: dict[str, list[int]] = {}
    result: list[tuple[list[int], int]] = [([index], 0) for index in range(len(sentences))]
    for index, sentence in enumerate(sentences):
        if sentence.document is not None and sentence.position is not None:
            documents.setdefault(sentence.document, []).append(index)
    for members in documents.values():
        members.sort(key=lambda index: (sentences[index].position, index))
        for position, index in enumerate(members):
            result[index] = (members, position)
    return result


def context_subwords(subwords: Sequence[Ints], document: Sequence[int], position: int, count: int) -> tuple[Ints, Ints]:
    """The subwords before and after sentence ``document[position]``: ``count`` in total, half on each side if possible."""
    before = _first([subwords[index][::-1] for index in _nearest(subwords, document[:position][::-1], count)], count)[::-1]
    after = _first([subwords[index] for index in _nearest(subwords, document[position + 1 :], count)], count)
    left = min(len(before), max(count // 2, count - len(after)))
    return before[len(before) - left :], after[: count - left]


def _nearest(subwords: Sequence[Ints], document: Sequence[int], count: int) -> list[int]:
    """The first sentences that have ``count`` subwords together."""
    nearest: list[int] = []
    for index in document:
        if count <= 0:
            break
        count -= len(subwords[index])
        nearest.append(index)
    return nearest


def _first(subwords: Sequence[Ints], count: int) -> Ints:
    joined: Ints = np.concatenate([NO_SUBWORDS, *subwords])
    return joined[: max(count, 0)]
