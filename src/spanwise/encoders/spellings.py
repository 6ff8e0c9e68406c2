"""The spellings of words, packed, and their tables in a batch. NumPy only, for every runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spanwise.encoders.vocabulary import LONGEST, UNKNOWN, Ints

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Spellings:
    """Spellings of variable length: row r is ``characters[starts[r] : starts[r] + lengths[r]]``."""

    characters: Ints
    starts: Array
    lengths: Array

    @classmethod
    def pack(cls, characters: Ints, lengths: Array) -> Spellings:
        """Spellings one after the other, with their lengths."""
        return cls(characters, lengths.cumsum() - lengths, lengths)

    @property
    def rows_of_words(self) -> Ints:
        """The row of each word, if row r is the spelling of word r: the first row with the same characters.

        Different words have the same spelling only if a character is unknown or not read.

        >>> Spellings.pack(np.array([2, 1, 3, 2, 1]), np.array([2, 1, 2])).rows_of_words.tolist()
        [0, 1, 0]
        """
        rows = np.arange(len(self.lengths), dtype=np.int32)
        first_rows: dict[bytes, int] = {}
        unknown = np.searchsorted(self.starts, np.flatnonzero(self.characters == UNKNOWN), side="right") - 1
        is_ambiguous = self.lengths == LONGEST
        is_ambiguous[unknown] = True
        for row in np.flatnonzero(is_ambiguous).tolist():
            rows[row] = first_rows.setdefault(self.row(row), row)
        return rows

    def row(self, row: int) -> bytes:
        """The characters of one row, in a form that is hashable."""
        start = self.starts[row]
        return self.characters[start : start + self.lengths[row]].tobytes()

    def table(self, rows: Array) -> Array:
        """Some rows as a padded array."""
        lengths = self.lengths[rows]
        mask = np.arange(max(lengths.max(initial=0), 1)) < lengths[:, None]
        table = np.zeros(mask.shape, np.int64)
        table[mask] = self.characters[(self.starts[rows, None] + np.arange(mask.shape[1]))[mask]]
        return table


def join(tables: Sequence[Spellings], rows: Sequence[Ints]) -> tuple[Spellings, Ints]:
    """One table with the given rows of several tables, and its rows in their order."""
    if all(table is tables[0] for table in tables):
        return tables[0], np.concatenate(rows)
    numbers: dict[bytes, int] = {}
    keys = (table.row(row) for table, some in zip(tables, rows, strict=True) for row in some.tolist())
    joined = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int32)
    lengths = np.array([len(key) // 4 for key in numbers], np.int64)
    return Spellings.pack(np.frombuffer(b"".join(numbers), np.int32), lengths), joined


def batch_tables(spellings: Spellings, rows: Ints) -> tuple[Array, Array, Array]:
    """The distinct rows of a batch as two padded tables, and where each of ``rows`` is in both together.

    The shortest come first, then those that occur first: the order must be the same in all processes,
    because it changes floating-point sums. The tables are split where padding is least, because few
    words are long.
    """
    positions = np.arange(len(rows))
    numbers = np.full(len(spellings.lengths), len(rows))  # by row: the position at which it occurs first
    np.minimum.at(numbers, rows, positions)
    distinct = rows[numbers[rows] == positions]
    distinct = distinct[spellings.lengths[distinct].argsort(kind="stable")]
    numbers[distinct] = np.arange(len(distinct))
    places = numbers[rows]
    if not len(distinct):
        return np.zeros((0, 1), np.int64), np.zeros((1, 1), np.int64), places
    lengths = spellings.lengths[distinct]
    short_count = np.arange(len(lengths))  # candidates for the number of rows of the first table
    sizes = short_count * lengths[short_count - 1] + (len(lengths) - short_count) * lengths[-1]
    split = int(sizes.argmin())
    return spellings.table(distinct[:split]), spellings.table(distinct[split:]), places
