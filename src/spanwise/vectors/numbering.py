"""A text as a stream of numbers on disk, so that its length costs no memory."""

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

END, RARE = -1, -2  # in ``ranks``: the end of a sentence, a word that is too rare to be learned
_CHUNK = 1 << 20


@dataclass(frozen=True)
class NumberedText:
    """``stream`` has one number per word, in order of first occurrence from 1, and a 0 behind each sentence.

    ``ranks`` turns such a number into the word's place in ``words``, where the most frequent stands first.
    """

    words: tuple[str, ...]
    counts: Ints
    stream: Numbers
    ranks: Numbers

    @property
    def length(self) -> int:
        """How many words the text has, the rare ones among them."""
        return int(np.count_nonzero(self.stream))


def number_text(sentences: Iterable[Sequence[str]], min_count: int, folder: Path) -> NumberedText:
    """The sentences in numbers. The stream lies in ``folder``, which must outlive it."""
    numbers: dict[str, int] = {}
    path = folder / "text.int32"
    with path.open("wb") as file:
        _write_stream(sentences, numbers, file)
    if not numbers:
        raise SpanwiseError("the text has no words")
    stream = np.asarray(np.memmap(path, np.int32, "r"))  # numba knows arrays, not maps
    occurrences = np.zeros(len(numbers) + 1, np.int64)
    for at in range(0, len(stream), _CHUNK):
        occurrences += np.bincount(stream[at : at + _CHUNK], minlength=len(occurrences))
    occurrences = occurrences[1:]
    order = np.argsort(-occurrences, kind="stable")
    order = order[occurrences[order] >= min_count]
    if not len(order):
        raise SpanwiseError(f"no word of the text occurs {min_count} times")
    ranks = np.full(len(numbers) + 1, RARE, np.int32)
    ranks[0] = END
    ranks[order + 1] = np.arange(len(order))
    spelled = list(numbers)
    return NumberedText(tuple(spelled[n] for n in order), occurrences[order], stream, ranks)


def _write_stream(sentences: Iterable[Sequence[str]], numbers: dict[str, int], file: IO[bytes]) -> None:
    piece = array("i")
    for sentence in sentences:
        piece.extend(numbers.setdefault(word, len(numbers) + 1) for word in sentence)
        piece.append(0)
        if len(piece) >= _CHUNK:
            piece.tofile(file)
            del piece[:]
    piece.tofile(file)
