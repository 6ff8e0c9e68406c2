"""Reading and writing of word vectors in all formats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.files.writing import atomic_output
from spanwise.vectors.binary_files import read_binary, write_binary
from spanwise.vectors.numpy_tables import find_table, find_words_file, read_table, validate_table
from spanwise.vectors.text_files import read_text, write_text

Floats = npt.NDArray[np.float32]

_TABLE, _WORDS = "vectors.safetensors", "words.json"


@dataclass(frozen=True)
class Vectors:
    """Distinct words and their vectors; ``table[n]`` is the vector of ``words[n]``."""

    words: tuple[str, ...]
    table: Floats

    @property
    def size(self) -> int:
        return int(self.table.shape[1])


def check_no_vectors(folder: Path) -> None:
    """Raise an error if a folder that should have text is one that ``spanwise vectors train`` wrote."""
    if (folder / _TABLE).is_file() and (folder / _WORDS).is_file():
        raise SpanwiseError(f"{folder}: expected text, found a folder of word vectors; query it with spanwise vectors similar")


def read_vectors(path: Path) -> Vectors:
    """Read the vectors of a file, or of a folder that ``spanwise vectors train`` wrote.

    - Text: a word and its values on each line, separated by single spaces. word2vec's first line
      ``count size`` is optional. A word may contain spaces (GloVe 840B has ``. . .``), because values
      are read from the right; but the last part of such a word must not be a number.
    - ``.bin``: word2vec's binary format.
    - ``.npy``, or a folder with one: the words are in a second file in row order, a ``.parquet`` with
      one column of strings or a ``.txt`` with one word per line.

    If a word occurs twice, its first vector is used.
    """
    if not path.exists():
        raise FormatError(path, None, "no such file or folder of word vectors")
    if path.is_dir() and (path / _TABLE).exists():
        return _distinct(*_read_folder(path))
    if path.is_dir():
        path = find_table(path)
    if path.suffix == ".npy":
        return _distinct(*read_table(path))
    if path.suffix == ".bin":
        return _distinct(*read_binary(path))
    if path.suffix in (".gz", ".zip", ".parquet", ".safetensors"):
        raise FormatError(
            path, None, "expected word vectors as text (word v1 v2 …), word2vec's .bin, .npy with its words, or a folder"
        )
    return _distinct(*read_text(path))


def source_files(path: Path) -> list[Path]:
    """Return the files that vectors are read from: the words of a ``.npy`` are in a second file."""
    return [path, find_words_file(path)] if path.suffix == ".npy" and path.is_file() else [path]


def write_vectors(vectors: Vectors, path: Path) -> int:
    """Write vectors in the format of the extension, and return the number of words skipped.

    ``.txt`` is GloVe's text format, ``.vec`` and ``.bin`` are word2vec's formats, no extension is a
    folder. Words with spaces or line ends are skipped in files, as are words with a byte-order mark at
    the start of GloVe's text.
    """
    if path.suffix not in (".txt", ".vec", ".bin", ""):
        raise SpanwiseError(
            f"{path}: unknown extension; expected .txt (GloVe), .vec (word2vec), .bin (word2vec, binary), "
            "or no extension for a folder"
        )
    if not path.suffix:
        with atomic_output(path, is_folder=True) as temporary:
            write_folder(vectors, temporary)
        return 0
    rows = [row for row, word in enumerate(vectors.words) if _is_writable(word)]
    while path.suffix == ".txt" and rows and vectors.words[rows[0]].startswith("\ufeff"):
        del rows[0]
    words, table = [vectors.words[row] for row in rows], vectors.table[rows]
    with atomic_output(path) as temporary:
        if path.suffix == ".bin":
            write_binary(words, table, temporary)
        else:
            write_text(words, table, temporary, has_header=path.suffix == ".vec")
    return len(vectors.words) - len(rows)


def write_folder(vectors: Vectors, folder: Path) -> None:
    """Write the table as safetensors, and its words in row order as JSON."""
    from safetensors.numpy import save_file

    save_file({"vectors": np.ascontiguousarray(vectors.table)}, folder / _TABLE)
    (folder / _WORDS).write_text(json.dumps(vectors.words), encoding="utf-8")


def _read_folder(folder: Path) -> tuple[list[str], Floats]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    table_path, words_path = folder / _TABLE, folder / _WORDS
    try:
        table = load_file(table_path)["vectors"]
    except (SafetensorError, KeyError) as error:
        raise FormatError(table_path, None, f"not a table of word vectors ({error})") from None
    try:
        words = json.loads(words_path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FormatError(words_path, None, "the words of the vectors are missing") from None
    except ValueError as error:
        raise FormatError(words_path, None, f"expected a JSON list of words: {error}") from None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise FormatError(words_path, None, "expected a list of words")
    return words, validate_table(table, words, table_path, words_path)


def _distinct(words: Sequence[str], table: Floats) -> Vectors:
    rows: dict[str, int] = {}
    for row, word in enumerate(words):
        rows.setdefault(word, row)
    if len(rows) == len(words):
        return Vectors(tuple(words), table)
    return Vectors(tuple(rows), table[list(rows.values())])


def _is_writable(word: str) -> bool:
    """Return True if text and binary files can represent the word, whose end is the first space."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return bool(word) and " " not in word and "\n" not in word
