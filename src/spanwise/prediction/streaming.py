"""Predict a stream of sentences chunk by chunk, in order and with any model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from spanwise.core.types import Sentence
from spanwise.prediction.windows import predict_in_windows

CHUNK = 2048  # sentences that are sorted by length together
CONTEXT = 512  # sentences before and after a chunk that serve as document context

# Maps sentences and their context to the sentences with predictions.
PredictChunk: TypeAlias = Callable[[Sequence[Sentence], Sequence[Sentence]], Sequence[Sentence]]


def stream_in_chunks(
    predict_chunk: PredictChunk, sentences: Iterable[Sentence], *, context: Sequence[Sentence] = (), uses_windows: bool = True
) -> Iterator[Sentence]:  # fmt: skip
    """Yield the predicted sentences in order; memory holds a few thousand at a time.

    ``uses_windows`` splits long sentences into windows (see ``split_into_windows``). ``context``
    holds more sentences of the same documents, in addition to the neighbours in the stream.
    """

    def in_chunks(stream: Iterator[Sentence]) -> Iterator[Sentence]:
        before: list[Sentence] = []
        chunk = list(islice(stream, CHUNK))
        while chunk:
            after = list(islice(stream, CONTEXT))
            if len(after) < CONTEXT:  # the end; a short last chunk would have small batches
                chunk, after = [*chunk, *after], []
            yield from predict_chunk(chunk, [*before, *after, *context])
            before = [*before, *chunk][-CONTEXT:]
            chunk = [*after, *islice(stream, CHUNK - len(after))]

    return predict_in_windows(sentences, in_chunks) if uses_windows else in_chunks(iter(sentences))
