"""Word vectors as a NumPy table with its words in a second file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from spanwise.core.counting import counted
from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.files.reading import read_lines

Floats = npt.NDArray[np.float32]


def find_table(folder: Path) -> Path:
    """Return the only ``.npy`` file of a folder."""
    return _find_single(folder, (".npy",), "expected vectors.safetensors with words.json, or one .npy file")


def read_table(path: Path) -> tuple[list[str], Floats]:
    """Read a ``.npy`` file and its words in row order.

    The words are in a ``.parquet`` file with one column of strings, or a ``.txt`` file with one word
    per line.
    """
    words_path = find_words_file(path)
    try:
        table = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise FormatError(path, None, f"not a NumPy table: {error}") from None
    if not isinstance(table, np.ndarray):
        raise FormatError(path, None, "expected a table of floats with one row per word")
    words = _parquet_words(words_path) if words_path.suffix == ".parquet" else [line for _, line in read_lines(words_path)]
    return words, validate_table(table, words, path, words_path)


def validate_table(table: npt.NDArray[np.generic], words: list[str], path: Path, words_path: Path) -> Floats:
    """Return the table in 32 bits if it is a valid table with one row per word."""
    if table.ndim != 2 or not table.shape[1] or table.dtype.kind != "f":
        raise FormatError(path, None, "expected a table of floats with one row per word")
    if len(words) != len(table):
        raise FormatError(
            words_path, None, f"expected {counted(len(table), 'word')}, one per row of {path.name}, found {len(words)}"
        )
    with np.errstate(over="ignore"):
        floats = np.ascontiguousarray(table, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(floats).all(1))
    if len(bad):
        raise FormatError(path, None, f"row {bad[0]} ({words[bad[0]]!r}) has a value that is not finite")
    return floats


def _find_single(folder: Path, suffixes: tuple[str, ...], expectation: str) -> Path:
    paths = sorted(path for path in folder.iterdir() if path.suffix in suffixes)
    if len(paths) != 1:
        names = ", ".join(path.name for path in paths) or "none"
        raise FormatError(folder, None, f"{expectation}; found {names}")
    return paths[0]


def find_words_file(path: Path) -> Path:
    """Return the file with the words of a ``.npy``: the one of the same name, or the only candidate."""
    for suffix in (".parquet", ".txt"):
        if path.with_suffix(suffix).exists():
            return path.with_suffix(suffix)
    return _find_single(path.parent, (".parquet", ".txt"), f"expected one .parquet or .txt file with the words of {path.name}")


def _parquet_words(path: Path) -> list[str]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise SpanwiseError(f"{path}: reading .parquet requires pyarrow; run pip install 'spanwise[datasets]'") from None
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
