"""Document context: the words of the sentences around a sentence, from any split. Labels are never used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from spanwise.core.documents import DocumentKey, document_keys
from spanwise.core.types import Sentence
from spanwise.encoders.subwords import NO_SUBWORDS, Ints


def has_documents(sentences: Iterable[Sentence]) -> bool:
    """Whether some sentences name their document and position, so that they may have context."""
    return any(sentence.document is not None and sentence.position is not None for sentence in sentences)


def with_context_sentences(
    sentences: Sequence[Sentence], context: Sequence[Sentence]
) -> tuple[list[Sentence], list[tuple[list[int], int]]]:
    """The sentences, followed by the ``context`` sentences of the same documents.

    Also returns, for each of ``sentences``, the indices of its document's sentences in order and its own
    position among them. Each position of a document occurs once; ``sentences`` take precedence over the
    context. Documents may have the same name: a repeated position starts another one, and so does
    context that has other words at most positions of a document.
    """
    documents = _documents(sentences)
    names = {name for name, _ in documents}
    context = [sentence for sentence in context if sentence.document in names]  # the others may be many
    context_documents: dict[str | None, list[dict[int, int]]] = {}
    for (name, _), others in _documents(context).items():
        context_documents.setdefault(name, []).append(others)
    result = list(sentences)
    order: list[tuple[list[int], int]] = [([index], 0) for index in range(len(sentences))]
    for (name, _), members in documents.items():
        for others in context_documents.get(name, ()):
            common = members.keys() & others.keys()
            equal = sum(result[members[position]].words == context[others[position]].words for position in common)
            for position in others.keys() - common if 2 * equal >= len(common) else ():
                members[position] = len(result)
                result.append(context[others[position]])
        indices = [members[position] for position in sorted(members)]
        for place, index in enumerate(indices):
            if index < len(sentences):
                order[index] = indices, place
    return result, order


def _documents(sentences: Sequence[Sentence]) -> dict[DocumentKey, dict[int, int]]:
    """The index of the sentence at each position of each document."""
    documents: dict[DocumentKey, dict[int, int]] = {}
    for index, (key, sentence) in enumerate(zip(document_keys(sentences), sentences, strict=True)):
        if sentence.document is not None and sentence.position is not None:
            documents.setdefault(key, {})[sentence.position] = index
    return documents


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
