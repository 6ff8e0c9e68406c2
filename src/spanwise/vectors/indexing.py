"""A text as a stream of word indices on disk, so that its length does not use memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from spanwise.core.errors import SpanwiseError

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]

END, RARE = -1, -2  # in ``ranks``: the end of a sentence, a word too rare to get a vector
_CHUNK = 1 << 20


@dataclass(frozen=True)
class IndexedText:
    """A text of word indices.

    ``stream`` has one index per word, counted from 1 in order of first occurrence, and a 0 after each
    sentence. ``ranks`` maps an index to the word's rank in ``words``, most frequent first.
    """

    words: tuple[str, ...]
    counts: Ints
    stream: Numbers
    ranks: Numbers

    @property
    def length(self) -> int:
        """The number of words in the text, including rare words."""
        return int(np.count_nonzero(self.stream))


def index_text(sentences: Iterable[Sequence[str]], min_count: int, folder: Path) -> IndexedText:
    """Index the words of sentences. The stream is a file in ``folder``, which must outlive it."""
    indices: dict[str, int] = {}
    path = folder / "text.int32"
    with path.open("wb") as file:
        _write_stream(sentences, indices, file)
    if not indices:
        raise SpanwiseError("the text has no words")
    stream = np.asarray(np.memmap(path, np.int32, "r"))  # numba supports arrays, not memory maps
    occurrences = np.zeros(len(indices) + 1, np.int64)
    for start in range(0, len(stream), _CHUNK):
        occurrences += np.bincount(stream[start : start + _CHUNK], minlength=len(occurrences))
    occurrences = occurrences[1:]
    order = np.argsort(-occurrences, kind="stable")
    order = order[occurrences[order] >= min_count]
    if not len(order):
        raise SpanwiseError(f"no word of the text occurs {min_count} times; lower min_count")
    ranks = np.full(len(indices) + 1, RARE, np.int32)
    ranks[0] = END
    ranks[order + 1] = np.arange(len(order))
    words = list(indices)
    return IndexedText(tuple(words[index] for index in order), occurrences[order], stream, ranks)


def _write_stream(sentences: Iterable[Sequence[str]], indices: dict[str, int], file: IO[bytes]) -> None:
    chunk = array("i")
    for sentence in sentences:
        chunk.extend(indices.setdefault(word, len(indices) + 1) for word in sentence)
        chunk.append(0)
        if len(chunk) >= _CHUNK:
            chunk.tofile(file)
            del chunk[:]
    chunk.tofile(file)
