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
    """The columns of a table. Those in ``json_columns`` have values that no type of parquet covers, and hold JSON."""

    schema: Any
    json_columns: frozenset[str]

    @classmethod
    def infer(cls, rows: Sequence[Row], added: Sequence[str]) -> Layout:
        """Infer the columns of rows; the ``added`` columns have fixed types and come last."""
        pa = import_pyarrow()
        names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in added]
        fields, json_columns = [], set()
        for name in names:
            try:
                kind = _to_array([row.get(name) for row in rows]).type
                is_json = not _is_writable(kind)
            except UnicodeEncodeError:  # a lone surrogate, which ``problem`` reports
                kind, is_json = pa.string(), False
            except (pa.ArrowException, OverflowError):  # values of several types, or a number of more than 64 bits
                is_json = True
            if is_json:
                json_columns.add(name)
            fields.append((name, pa.string() if is_json else kind))
        return cls(pa.schema([*fields, *((name, column_types()[name]) for name in added)]), frozenset(json_columns))

    def table(self, rows: Sequence[Row]) -> Any:
        """Return the rows as a table; raise an error of pyarrow, or ``ValueError``, if a value does not fit."""
        pa = import_pyarrow()
        known = frozenset(self.schema.names)
        for name in (name for row in rows for name in row):
            if name not in known:
                raise ValueError(f"the column {name!r} is not in the earlier rows")
        return pa.table([self._array(field, rows) for field in self.schema], schema=self.schema)

    def _array(self, field: Any, rows: Iterable[Row]) -> Any:
        pa = import_pyarrow()
        values = [row.get(field.name) for row in rows]
        if field.name in self.json_columns:
            values = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
        if field.name in column_types():  # predictions
            return pa.array(values, field.type)
        array = _to_array(values)
        if array.type == field.type:
            return array
        if not _fits(array.type, field.type):  # pyarrow would drop keys, cut 2.5 to 2 and split texts into letters
            raise ValueError(f"the column {field.name!r} has values of type {field.type}, not {array.type}")
        return pa.array(values, field.type)

    @classmethod
    def problem(cls, row: Row, layout: Layout | None, added: Sequence[str]) -> str | None:
        """Why a row cannot be written, or does not fit the columns of ``layout``."""
        try:
            (layout or cls.infer([row], added)).table([row])
        except (import_pyarrow().ArrowException, ValueError, OverflowError, TypeError) as error:
            reason = next(iter(str(error).splitlines()), "")
            return f"does not fit the parquet columns of the first rows: {reason}; use --format jsonl"
        return None


def _to_array(values: Sequence[Any]) -> Any:
    """Infer the type of values; raise an error of pyarrow, or ``OverflowError``, if no type has all of them."""
    pa = import_pyarrow()
    array = pa.array(values)
    if _has_boolean_number(values, array.type):
        raise pa.ArrowTypeError("expected a number, found a boolean")
    return array


def _has_boolean_number(values: Iterable[Any], kind: Any) -> bool:
    """Whether true or false is among the decimal numbers of values: pyarrow would change it to 1.0 or 0.0."""
    types = import_pyarrow().types
    if types.is_floating(kind):
        return any(isinstance(value, bool) for value in values)
    if types.is_list(kind):
        return _has_boolean_number((item for value in values if value is not None for item in value), kind.value_type)
    if types.is_struct(kind):
        present = [value for value in values if value is not None]
        return any(_has_boolean_number((value.get(field.name) for value in present), field.type) for field in kind)
    return False


def _fits(kind: Any, column: Any) -> bool:
    """Whether a column can hold all values of a type unchanged."""
    types = import_pyarrow().types
    if types.is_null(kind) or kind == column:
        return True
    if types.is_integer(kind):
        return bool(types.is_floating(column))  # pyarrow refuses integers that are not exact
    if types.is_list(kind) and types.is_list(column):
        return _fits(kind.value_type, column.value_type)
    if types.is_struct(kind) and types.is_struct(column):
        columns = {field.name: field.type for field in column}
        return all(field.name in columns and _fits(field.type, columns[field.name]) for field in kind)
    return False


def _is_writable(kind: Any) -> bool:
    """Whether parquet has the type: it has no structs without fields, the type of ``{}``."""
    types = import_pyarrow().types
    if types.is_list(kind):
        return _is_writable(kind.value_type)
    return not types.is_struct(kind) or (len(kind) > 0 and all(_is_writable(field.type) for field in kind))
