"""JSON rows as tables of pyarrow, with a schema that is inferred from the first rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spanwise.annotation.arrow import column_types, import_pyarrow
from spanwise.annotation.records import Row


@dataclass(frozen=True)
class Layout:
    """The columns of a table. Those in ``json_columns`` have values of several types and hold JSON."""

    schema: Any
    json_columns: frozenset[str]

    @classmethod
    def infer(cls, rows: Sequence[Row], added: Sequence[str]) -> Layout:
        """Infer the columns of rows; the ``added`` columns have fixed types and come last."""
        pa = import_pyarrow()
        names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in added]
        fields, mixed = [], set()
        for name in names:
            try:
                kind = pa.array([row.get(name) for row in rows]).type
            except UnicodeEncodeError:  # a lone surrogate, which ``problem`` reports
                kind = pa.string()
            except (pa.ArrowException, OverflowError):  # values of several types, or a number of more than 64 bits
                kind = pa.string()
                mixed.add(name)
            fields.append((name, kind))
        return cls(pa.schema([*fields, *((name, column_types()[name]) for name in added)]), frozenset(mixed))

    def table(self, rows: Sequence[Row]) -> Any:
        """Return the rows as a table; raise an error of pyarrow, or ``ValueError``, if a value does not fit."""
        pa = import_pyarrow()
        for name in (name for row in rows for name in row):
            if name not in self.schema.names:
                raise ValueError(f"the column {name!r} is not in the earlier rows")
        arrays = [pa.array(self._values(field.name, rows), field.type) for field in self.schema]
        return pa.table(arrays, schema=self.schema)

    def _values(self, name: str, rows: Iterable[Row]) -> list[Any]:
        values = [row.get(name) for row in rows]
        if name not in self.json_columns:
            return values
        return [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]

    def problem(self, row: Row) -> str | None:
        """Why a row does not fit the columns."""
        try:
            self.table([row])
        except (import_pyarrow().ArrowException, ValueError, OverflowError, TypeError) as error:
            reason = next(iter(str(error).splitlines()), "")
            return f"does not fit the parquet columns of the first rows: {reason}; use --format jsonl"
        return None
