"""Word vectors in word2vec's binary format: a line ``count size``, then each word, a space, and its values in 32 bits."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spanwise.core.counting import counted
from spanwise.core.errors import FormatError

Floats = npt.NDArray[np.float32]

_VALUE = np.dtype("<f4")
_LONGEST_WORD = 10_000  # bytes; a file with a longer run without a space has another format


def write_binary(words: Sequence[str], table: Floats, path: Path) -> None:
    with path.open("wb") as file:
        file.write(f"{len(words)} {table.shape[1]}\n".encode())
        for word, row in zip(words, table.astype(_VALUE, copy=False), strict=True):
            file.write(word.encode() + b" " + row.tobytes())


def read_binary(path: Path) -> tuple[list[str], Floats]:
    """Read words and vectors. Line ends before words are ignored: word2vec writes them, gensim does not."""
    if not path.stat().st_size:
        raise FormatError(path, None, "the file is empty; expected word2vec's binary format")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        count, size = _header(content, path)
        offset = content.find(b"\n") + 1
        if count * (size * _VALUE.itemsize + 1) > len(content) - offset:
            raise FormatError(
                path, None, f"the file is too short for its header: {counted(count, 'word')} of {counted(size, 'value')}"
            )
        words, table = [], np.empty((count, size), np.float32)
        for index in range(count):
            space = content.find(b" ", offset, offset + _LONGEST_WORD)
            end = space + 1 + size * _VALUE.itemsize
            if space < 0 or end > len(content):
                raise FormatError(path, None, f"word {index + 1} of {count} is incomplete or invalid")
            try:
                words.append(content[offset:space].lstrip(b"\n").decode("utf-8"))
            except UnicodeDecodeError:
                raise FormatError(
                    path, None, f"word {index + 1} of {count} is not UTF-8, or the values before it are invalid"
                ) from None
            table[index] = np.frombuffer(content[space + 1 : end], _VALUE)
            offset = end
        if content[offset:].strip():
            raise FormatError(path, None, f"the file has more words than its header declares ({count})")
    bad = np.flatnonzero(~np.isfinite(table).all(1))
    if len(bad):
        raise FormatError(path, None, f"word {bad[0] + 1} of {count} ({words[bad[0]]!r}) has a value that is not finite")
    return words, table


def _header(content: mmap.mmap, path: Path) -> tuple[int, int]:
    pieces = content[: max(content.find(b"\n", 0, 100), 0)].split()
    if len(pieces) != 2 or not all(piece.isdigit() for piece in pieces) or not all(map(int, pieces)):
        raise FormatError(path, 1, "expected word2vec's binary format, with the number of words and values in the first line")
    return int(pieces[0]), int(pieces[1])
