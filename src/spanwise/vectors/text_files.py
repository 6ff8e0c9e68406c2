"""Word vectors as text: GloVe's (``word v1 v2 …``) and word2vec's, which has a first line ``count size``."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spanwise.core.errors import FormatError
from spanwise.files.reading import lines
from spanwise.files.writing import writing

Floats = npt.NDArray[np.float32]


def write_text(words: Sequence[str], table: Floats, path: Path, *, header: bool) -> None:
    """One word a line. Nine digits are as many as tell all 32-bit numbers apart."""
    values = " %.9g" * table.shape[1]
    with writing(path) as file:
        if header:
            file.write(f"{len(words)} {table.shape[1]}\n")
        for word, row in zip(words, table, strict=True):
            file.write(f"{word}{values % tuple(row.tolist())}\n")


def read_text(path: Path) -> tuple[list[str], Floats]:
    """The words and vectors of a text, with or without a header; values are taken from the right of a line."""
    words: list[str] = []
    values, numbers = array("f"), array("q")
    size, expected, promised = 0, "", None
    for number, line in lines(path):
        line = line.rstrip(" ")
        if not line:
            continue
        pieces = line.split(" ")
        if not size:
            if len(pieces) == 2 and not words and pieces[0].isdecimal() and pieces[1].isdecimal():
                promised, size, expected = int(pieces[0]), int(pieces[1]), "as the header says"
                if not size:
                    raise FormatError(path, number, "the header says vectors of 0 values")
                continue
            size, expected = _size_of_first(pieces), f"as in line {number}"
            if not size:
                raise FormatError(path, number, "no values behind the word")
        if len(pieces) != size + 1:
            pieces = _with_spaces(pieces, size, expected, path, number)
        if not pieces[0]:
            raise FormatError(path, number, "a line begins with its word, this one with a space")
        words.append(pieces[0])
        numbers.append(number)
        try:
            values.extend(map(float, pieces[1:]))
        except ValueError:
            wrong = next(piece for piece in pieces[1:] if not _is_number(piece))
            raise FormatError(path, number, f"{wrong!r} is not a number; expected a word and {size} values") from None
    if not words:
        raise FormatError(path, None, "no word vectors in it; expected lines of a word and its values")
    if promised is not None and promised != len(words):
        raise FormatError(path, None, f"the header says {promised} words, the file has {len(words)}")
    table = np.frombuffer(values, dtype=np.float32).reshape(len(words), size)
    bad = np.flatnonzero(~np.isfinite(table).all(1))
    if len(bad):
        raise FormatError(path, numbers[int(bad[0])], "a value is not finite, or too large for 32 bits")
    return words, table


def _size_of_first(pieces: list[str]) -> int:
    """How many values the first line has: the numbers at its end, the first piece being always the word's."""
    size = 0
    while size < len(pieces) - 1 and _is_number(pieces[-1 - size]):
        size += 1
    return size or len(pieces) - 1


def _with_spaces(pieces: list[str], size: int, expected: str, path: Path, number: int) -> list[str]:
    word, values = pieces[:-size], pieces[-size:]
    if not word or (len(word) > 1 and _is_number(word[-1])):
        found = len(pieces) - 1
        raise FormatError(path, number, f"{found} value{'s' * (found != 1)} behind the word, expected {size}, {expected}")
    return [" ".join(word), *values]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
