"""Word vectors as text: GloVe's format (``word v1 v2 …``) and word2vec's, with a first line ``count size``."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spanwise.core.counting import counted
from spanwise.core.errors import FormatError
from spanwise.files.reading import read_lines
from spanwise.files.writing import open_output

Floats = npt.NDArray[np.float32]


def write_text(words: Sequence[str], table: Floats, path: Path, *, has_header: bool) -> None:
    """Write one word per line, with nine digits per value, which distinguish all 32-bit floats."""
    values = " %.9g" * table.shape[1]
    with open_output(path) as file:
        if has_header:
            file.write(f"{len(words)} {table.shape[1]}\n")
        for word, row in zip(words, table, strict=True):
            file.write(f"{word}{values % tuple(row.tolist())}\n")


def read_text(path: Path) -> tuple[list[str], Floats]:
    """Read words and vectors with or without a header; values are read from the right of a line."""
    words: list[str] = []
    values, line_numbers = array("f"), array("q")
    size, reason, header_count = 0, "", None
    for number, line in read_lines(path):
        line = line.rstrip(" ")
        if not line:
            continue
        pieces = line.split(" ")
        if not size:
            if len(pieces) == 2 and not words and pieces[0].isdecimal() and pieces[1].isdecimal():
                header_count, size, reason = int(pieces[0]), int(pieces[1]), "as the header declares"
                if not size:
                    raise FormatError(path, number, "the header declares vectors of 0 values")
                continue
            size, reason = _count_values(pieces), f"as in line {number}"
            if not size:
                raise FormatError(path, number, "expected values after the word, found none")
        if len(pieces) != size + 1:
            pieces = _join_word(pieces, size, reason, path, number)
        if not pieces[0]:
            raise FormatError(path, number, "expected a word at the start of the line, found a space")
        words.append(pieces[0])
        line_numbers.append(number)
        try:
            values.extend(map(float, pieces[1:]))
        except ValueError:
            wrong = next(piece for piece in pieces[1:] if not _is_number(piece))
            raise FormatError(
                path, number, f"{wrong!r} is not a number; expected a word and {counted(size, 'value')}"
            ) from None
    if not words:
        raise FormatError(path, None, "found no word vectors; expected lines of a word and its values")
    if header_count is not None and header_count != len(words):
        raise FormatError(path, None, f"the header declares {counted(header_count, 'word')}, but the file has {len(words):,}")
    table = np.frombuffer(values, dtype=np.float32).reshape(len(words), size)
    bad = np.flatnonzero(~np.isfinite(table).all(1))
    if len(bad):
        raise FormatError(path, line_numbers[int(bad[0])], "a value is not finite, or too large for 32 bits")
    return words, table


def _count_values(pieces: list[str]) -> int:
    """Return the number of values of the first line: the numbers at its end, without the first piece."""
    size = 0
    while size < len(pieces) - 1 and _is_number(pieces[-1 - size]):
        size += 1
    return size or len(pieces) - 1


def _join_word(pieces: list[str], size: int, reason: str, path: Path, number: int) -> list[str]:
    """Join the pieces of a word that contains spaces."""
    word, values = pieces[:-size], pieces[-size:]
    if not word or (len(word) > 1 and _is_number(word[-1])):
        raise FormatError(path, number, f"expected {counted(size, 'value')} after the word, {reason}, found {len(pieces) - 1}")
    return [" ".join(word), *values]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
