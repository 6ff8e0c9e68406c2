"""Write a shard: rows with predictions as parquet or JSON lines, and failed rows with their reasons."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

from spanwise.annotation.arrow import append_columns, import_pyarrow
from spanwise.annotation.json_tables import Layout
from spanwise.annotation.reading import ArrowRows, Rows
from spanwise.annotation.records import ENTITIES, RELATIONS, Annotation, Row, to_columns

SCHEMA_BATCHES = 16  # of JSON rows, from which the schema of a parquet file is inferred
Problems: TypeAlias = dict[int, str]  # rows by index in their batch, with the reason of their failure


class ShardWriter(ABC):
    """Writer of the rows of a shard, in order. ``close`` completes the file."""

    suffix: str

    def __init__(self, path: Path, *, with_relations: bool) -> None:
        self.path, self.with_relations = path, with_relations

    @abstractmethod
    def write(self, rows: Rows, annotations: Sequence[Annotation], indices: Sequence[int]) -> Problems:
        """Write some rows of a batch; return those that the format cannot represent."""

    @abstractmethod
    def close(self) -> None: ...

    @property
    def has_columns(self) -> bool:
        """Whether the columns of the input are known. A parquet file without them would hide those of other shards."""
        return True

    def columns(self, annotations: Sequence[Annotation], indices: Sequence[int]) -> Mapping[str, list[Any]]:
        chosen = (annotations[index] for index in indices)
        return to_columns(chosen, with_relations=self.with_relations, with_errors=False)  # type: ignore[return-value]


class JsonlWriter(ShardWriter):
    """One JSON object per row. Values that JSON does not have, such as dates, are written as strings."""

    suffix = ".jsonl"

    def __init__(self, path: Path, *, with_relations: bool) -> None:
        super().__init__(path, with_relations=with_relations)
        self.file: IO[bytes] = path.open("wb")

    def write(self, rows: Rows, annotations: Sequence[Annotation], indices: Sequence[int]) -> Problems:
        columns = self.columns(annotations, indices)
        for position, record in enumerate(rows.records(indices)):
            self.file.write(to_line({**record, **{name: values[position] for name, values in columns.items()}}))
        return {}

    def close(self) -> None:
        self.file.close()


class ParquetWriter(ShardWriter):
    """Parquet with all columns of the input.

    The columns of JSON rows are inferred from the first batches of a shard; a later row that does not
    fit them is not written.
    """

    suffix = ".parquet"

    def __init__(self, path: Path, *, with_relations: bool) -> None:
        super().__init__(path, with_relations=with_relations)
        self._writer: Any = None
        self._layout: Layout | None = None
        self._first: list[Row] = []  # rows until the columns are known
        self._batches = 0

    @property
    def added(self) -> list[str]:
        return [ENTITIES, RELATIONS] if self.with_relations else [ENTITIES]

    def write(self, rows: Rows, annotations: Sequence[Annotation], indices: Sequence[int]) -> Problems:
        columns = self.columns(annotations, indices)
        if isinstance(rows, ArrowRows):
            self._write_table(append_columns(rows.table(indices), columns))
            return {}
        records = [
            {**record, **{name: values[position] for name, values in columns.items()}}
            for position, record in enumerate(rows.records(indices))
        ]
        fits, problems = self._check(records)
        if self._layout is None:
            self._first += fits
            self._batches += 1
            if self._batches >= SCHEMA_BATCHES:
                self._start()
        elif fits:
            self._write_table(self._layout.table(fits))
        return {indices[position]: problem for position, problem in problems.items()}

    def close(self) -> None:
        if self._writer is None:
            self._start()
        self._writer.close()

    @property
    def has_columns(self) -> bool:
        return self._layout is None or len(self._layout.schema) > len(self.added)

    def _check(self, records: list[Row]) -> tuple[list[Row], Problems]:
        """Split rows into those that can be written and the problems of the others."""
        pa = import_pyarrow()
        try:
            (self._layout or Layout.infer(records, self.added)).table(records)
        except (pa.ArrowException, ValueError, OverflowError, TypeError):
            checked = (Layout.problem(record, self._layout, self.added) for record in records)
            problems = {position: problem for position, problem in enumerate(checked) if problem is not None}
            return [record for position, record in enumerate(records) if position not in problems], problems
        return records, {}

    def _start(self) -> None:
        self._layout = Layout.infer(self._first, self.added)
        self._write_table(self._layout.table(self._first))
        self._first = []

    def _write_table(self, table: Any) -> None:
        if self._writer is None:
            self._writer = import_pyarrow().parquet.ParquetWriter(self.path, table.schema, compression="zstd")
        self._writer.write_table(table)


WRITERS: dict[str, type[ShardWriter]] = {"parquet": ParquetWriter, "jsonl": JsonlWriter}


def to_line(record: Mapping[str, Any]) -> bytes:
    """Return a line of JSON; a lone surrogate is escaped, because it has no bytes in UTF-8.

    >>> to_line({"text": "né"}).decode()
    '{"text": "né"}\\n'
    """
    try:
        return f"{_encode(record)}\n".encode()
    except UnicodeEncodeError:
        return f"{json.dumps(record, default=_to_json)}\n".encode()


def _to_json(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value)


_encode = json.JSONEncoder(ensure_ascii=False, default=_to_json).encode  # `dumps` would build an encoder for each row
