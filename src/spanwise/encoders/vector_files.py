"""Word vectors on disk: GloVe text, word2vec text, and a NumPy table with its words beside it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spanwise.errors import FormatError, SpanwiseError
from spanwise.formats.files import lines

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Vectors:
    """Distinct words and their vectors, ``table[n]`` the vector of ``words[n]``."""

    words: tuple[str, ...]
    table: Floats

    @property
    def size(self) -> int:
        return int(self.table.shape[1])


def read_vectors(path: Path) -> Vectors:
    """The vectors of a file, or of a folder that holds a ``.npy`` and its words.

    Text has a word and its values on each line, separated by single spaces; word2vec's first line ``count size`` may be there
    or not. A word may itself have spaces (GloVe 840B has ``. . .``), for values are taken from the right; only the last
    piece of such a word must be no number. Of a word that comes twice the first vector holds.
    A ``.npy`` needs its words beside it, in row order: a ``.parquet`` with one column of strings, or a ``.txt`` with one
    word a line.
    """
    if not path.exists():
        raise FormatError(path, None, "no such file of word vectors")
    if path.is_dir():
        path = _only(path, (".npy",), "a folder of word vectors holds one .npy file")
    if path.suffix == ".npy":
        words_path = _words_beside(path)
        return _distinct(*_read_table(path, words_path))
    if path.suffix in (".bin", ".gz", ".zip", ".parquet"):
        raise FormatError(path, None, "word vectors are read from text (word v1 v2 …) or from .npy with its words beside it")
    return _distinct(*_read_text(path))


def _distinct(words: Sequence[str], table: Floats) -> Vectors:
    first = dict.fromkeys(words)
    if len(first) == len(words):
        return Vectors(tuple(words), table)
    rows: dict[str, int] = {}
    for row, word in enumerate(words):
        rows.setdefault(word, row)
    return Vectors(tuple(rows), table[list(rows.values())])


# --- text -------------------------------------------------------------------------------------------------------------


def _read_text(path: Path) -> tuple[list[str], Floats]:
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


# --- a table and its words --------------------------------------------------------------------------------------------


def _only(folder: Path, suffixes: tuple[str, ...], rule: str) -> Path:
    found = sorted(path for path in folder.iterdir() if path.suffix in suffixes)
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise FormatError(folder, None, f"{rule}; found {names}")
    return found[0]


def _words_beside(path: Path) -> Path:
    for suffix in (".parquet", ".txt"):
        if path.with_suffix(suffix).exists():
            return path.with_suffix(suffix)
    return _only(path.parent, (".parquet", ".txt"), f"the words of {path.name} are sought in one .parquet or .txt beside it")


def _read_table(path: Path, words_path: Path) -> tuple[list[str], Floats]:
    try:
        table = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise FormatError(path, None, f"not a NumPy table: {error}") from None
    if not isinstance(table, np.ndarray) or table.ndim != 2 or not table.shape[1] or table.dtype.kind != "f":
        raise FormatError(path, None, "expected a table of floats with one row per word")
    words = _parquet_words(words_path) if words_path.suffix == ".parquet" else [line for _, line in lines(words_path)]
    if len(words) != len(table):
        raise FormatError(words_path, None, f"{len(words)} words for the {len(table)} rows of {path.name}")
    with np.errstate(over="ignore"):
        table = np.ascontiguousarray(table, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(table).all(1))
    if len(bad):
        raise FormatError(path, None, f"row {bad[0]} ({words[bad[0]]!r}) has a value that is not finite")
    return words, table


def _parquet_words(path: Path) -> list[str]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise SpanwiseError(f"{path}: reading .parquet needs pyarrow: pip install 'spanwise[datasets]'") from None
    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise FormatError(path, None, f"not a parquet file: {str(error).splitlines()[0]}") from None
    columns = [name for name, type in zip(table.column_names, table.schema.types, strict=True) if _is_text(type)]
    if len(columns) != 1:
        raise FormatError(path, None, f"expected one column of words, found {len(columns)} columns of text")
    words: list[str] = table.column(columns[0]).to_pylist()
    if None in words:
        raise FormatError(path, None, f"row {words.index(None)} has no word")  # type: ignore[arg-type]
    return words


def _is_text(type: object) -> bool:
    return str(type) in ("string", "large_string", "string_view")
