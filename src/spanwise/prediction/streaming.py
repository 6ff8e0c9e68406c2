"""Prediction of sentences as they come: some thousand at a time, in their order. Knows nothing of what predicts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from spanwise.core.types import Sentence
from spanwise.prediction.windows import in_pieces

CHUNK = 2048  # sentences whose lengths are sorted together
REACH = 512  # sentences before and behind a chunk that may be context

# Sentences and others of their documents, to the first ones with what is found in place of their entities and relations.
Find: TypeAlias = Callable[[Sequence[Sentence], Sequence[Sentence]], Sequence[Sentence]]


def streamed(
    find: Find, sentences: Iterable[Sentence], *, context: Sequence[Sentence] = (), whole: bool = False
) -> Iterator[Sentence]:  # fmt: skip
    """What ``find`` makes of the sentences, one after another; only some thousand are in memory at a time.

    Long ones are read in windows (see ``pieces``), unless they are to stay ``whole``. ``context`` are more sentences of their
    documents besides those that come near them.
    """

    def in_chunks(stream: Iterator[Sentence]) -> Iterator[Sentence]:
        before: list[Sentence] = []
        chunk = list(islice(stream, CHUNK))
        while chunk:
            ahead = list(islice(stream, REACH))
            yield from find(chunk, [*before, *ahead, *context])
            before = [*before, *chunk][-REACH:]
            chunk = [*ahead, *islice(stream, CHUNK - len(ahead))]

    return in_chunks(iter(sentences)) if whole else in_pieces(sentences, in_chunks)
