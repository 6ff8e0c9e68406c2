"""Word vectors on disk, in the formats people have and in Spanwise's own folder."""

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
from spanwise.vectors.numpy_tables import checked_table, read_table, table_in, words_beside
from spanwise.vectors.text_files import read_text, write_text

Floats = npt.NDArray[np.float32]

_TABLE, _WORDS = "vectors.safetensors", "words.json"


@dataclass(frozen=True)
class Vectors:
    """Distinct words and their vectors, ``table[n]`` the vector of ``words[n]``."""

    words: tuple[str, ...]
    table: Floats

    @property
    def size(self) -> int:
        return int(self.table.shape[1])


def check_no_vectors(folder: Path) -> None:
    """Whoever looks for text in a folder as ``spanwise vectors train`` writes it is told what it is."""
    if (folder / _TABLE).is_file() and (folder / _WORDS).is_file():
        raise SpanwiseError(f"{folder}: is a folder of word vectors, not of text; see spanwise vectors similar")


def read_vectors(path: Path) -> Vectors:
    """The vectors of a file, or of a folder as ``spanwise vectors train`` writes it.

    Text has a word and its values on each line, separated by single spaces; word2vec's first line ``count size`` may be there
    or not. A word may itself have spaces (GloVe 840B has ``. . .``), for values are taken from the right; only the last
    piece of such a word must be no number. A ``.bin`` is word2vec's binary format. A ``.npy``, or a folder with one, needs
    its words beside it, in row order: a ``.parquet`` with one column of strings, or a ``.txt`` with one word a line.
    Of a word that comes twice the first vector holds.
    """
    if not path.exists():
        raise FormatError(path, None, "no such file of word vectors")
    if path.is_dir() and (path / _TABLE).exists():
        return _distinct(*_read_folder(path))
    if path.is_dir():
        path = table_in(path)
    if path.suffix == ".npy":
        return _distinct(*read_table(path))
    if path.suffix == ".bin":
        return _distinct(*read_binary(path))
    if path.suffix in (".gz", ".zip", ".parquet", ".safetensors"):
        raise FormatError(
            path, None, "word vectors are read from text (word v1 v2 …), word2vec's .bin, .npy with its words, or a folder"
        )
    return _distinct(*read_text(path))


def files_of(path: Path) -> list[Path]:
    """What the vectors of a path are read from: the words of a ``.npy`` are in a file beside it."""
    return [path, words_beside(path)] if path.suffix == ".npy" and path.is_file() else [path]


def write_vectors(vectors: Vectors, path: Path) -> int:
    """Write the vectors as the name says: ``.txt`` GloVe's text, ``.vec`` and ``.bin`` word2vec's, without extension a folder.

    Files cannot hold words with spaces or line ends in them, nor can GloVe's text begin with a byte-order mark that is part of
    a word: how many were left out is returned.
    """
    if path.suffix not in (".txt", ".vec", ".bin", ""):
        raise SpanwiseError(
            f"{path}: the name does not tell the format; expected .txt (GloVe), .vec (word2vec), .bin (word2vec, binary), "
            "or no extension for a folder"
        )
    if not path.suffix:
        with atomic_output(path, folder=True) as temporary:
            write_folder(vectors, temporary)
        return 0
    kept = [row for row, word in enumerate(vectors.words) if _fits_a_line(word)]
    while path.suffix == ".txt" and kept and vectors.words[kept[0]].startswith("\ufeff"):
        del kept[0]
    words, table = [vectors.words[row] for row in kept], vectors.table[kept]
    with atomic_output(path) as temporary:
        if path.suffix == ".bin":
            write_binary(words, table, temporary)
        else:
            write_text(words, table, temporary, header=path.suffix == ".vec")
    return len(vectors.words) - len(kept)


def write_folder(vectors: Vectors, folder: Path) -> None:
    """The table as safetensors, and its words in row order."""
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
        raise FormatError(words_path, None, f"not the words of vectors: {error}") from None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise FormatError(words_path, None, "expected a list of words")
    return words, checked_table(table, words, table_path, words_path)


def _distinct(words: Sequence[str], table: Floats) -> Vectors:
    rows: dict[str, int] = {}
    for row, word in enumerate(words):
        rows.setdefault(word, row)
    if len(rows) == len(words):
        return Vectors(tuple(words), table)
    return Vectors(tuple(rows), table[list(rows.values())])


def _fits_a_line(word: str) -> bool:
    """True for a word that text and binary files can hold: readers end it at the first space."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return bool(word) and " " not in word and "\n" not in word
