"""The footer of a parquet file, which is a Thrift struct in the compact protocol.

pyarrow aborts the process if it is asked for the statistics of some damaged columns, so that the sizes
are read here before pyarrow reads the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_MAX_DEPTH = 20
# Numbers of the fields, from parquet.thrift.
_ROW_GROUPS, _COLUMNS, _META_DATA, _NUM_VALUES, _UNCOMPRESSED_SIZE = 4, 1, 3, 5, 6
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12


def column_sizes(file: Path) -> list[tuple[int, int]]:
    """The number of values and the uncompressed size of every column of every row group."""
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        opened.seek(max(size - 8, 0))
        length, magic = int.from_bytes(opened.read(4), "little"), opened.read(4)
        if magic != b"PAR1" or length > size - 8:
            raise ValueError("the footer is missing")
        opened.seek(size - 8 - length)
        footer = opened.read(length)
    try:
        groups = _Compact(footer).struct(0).get(_ROW_GROUPS, [])
        columns = [column[_META_DATA] for group in groups for column in group[_COLUMNS]]
        return [(int(column[_NUM_VALUES]), int(column[_UNCOMPRESSED_SIZE])) for column in columns]
    except (IndexError, KeyError, TypeError, AttributeError):
        raise ValueError("the footer is damaged") from None


class _Compact:
    """Reads values of the compact protocol. A struct is a dictionary by the numbers of its fields."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def struct(self, depth: int) -> dict[int, Any]:
        if depth > _MAX_DEPTH:
            raise ValueError("the footer is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while header := self._byte():
            kind, delta = header & 15, header >> 4
            number = number + delta if delta else self._integer()
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE, _BYTE):  # in a list, a boolean is a byte
            return self._byte()
        if kind < _DOUBLE:
            return self._integer()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind in (_LIST, _SET):
            header = self._byte()
            count = self._varint() if header >> 4 == 15 else header >> 4
            return [self._value(header & 15, depth + 1) for _ in range(self._checked(count))]
        if kind == _MAP:
            count = self._checked(self._varint())
            kinds = self._byte() if count else 0
            return [(self._value(kinds >> 4, depth + 1), self._value(kinds & 15, depth + 1)) for _ in range(count)]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError("the footer is damaged")

    def _checked(self, count: int) -> int:
        """Every item has at least one byte."""
        if count > len(self.data) - self.position:
            raise ValueError("the footer is damaged")
        return count

    def _byte(self) -> int:
        self.position += 1
        return self.data[self.position - 1]

    def _bytes(self, count: int) -> bytes:
        self.position += self._checked(count)
        return self.data[self.position - count : self.position]

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
            if shift > 63:
                raise ValueError("the footer is damaged")

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)
