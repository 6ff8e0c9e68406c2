"""Columns of predictions in pyarrow, and rows of pyarrow as dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from spanwise.annotation.records import ENTITIES, RELATIONS, Row
from spanwise.core.errors import SpanwiseError

NEEDS_PYARROW = "parquet and zstd need pyarrow; run pip install 'spanwise[annotate]'"


def import_pyarrow() -> Any:
    """Import pyarrow with its parquet module, or explain how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise SpanwiseError(NEEDS_PYARROW) from None
    return pyarrow


@cache
def column_types() -> Mapping[str, Any]:
    """The types of the added columns; others are strings."""
    pa = import_pyarrow()
    fragment = pa.struct([("start", pa.int64()), ("end", pa.int64())])
    entity = pa.struct(
        [("type", pa.string()), ("text", pa.string()), ("score", pa.float64()), ("start", pa.int64()), ("end", pa.int64()),
         ("fragments", pa.list_(fragment))]
    )  # fmt: skip
    relation = pa.struct([("type", pa.string()), ("head", pa.int64()), ("tail", pa.int64()), ("score", pa.float64())])
    return {ENTITIES: pa.list_(entity), RELATIONS: pa.list_(relation)}


def append_columns(table: Any, columns: Mapping[str, list[Any]]) -> Any:
    """Append columns to a ``Table`` or ``RecordBatch``."""
    pa = import_pyarrow()
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values, column_types().get(name, pa.string())))
    return table


def to_rows(table: Any) -> list[Row]:
    """Return the rows of a ``Table``. Times that Python does not have (nanoseconds, the year 30000) are texts or numbers."""
    columns = [_values(column) for column in table.columns]
    return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def _values(column: Any) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:
    """The value of a scalar; one that Python cannot represent is a text, or else its number."""
    pa = import_pyarrow()
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        if isinstance(scalar, pa.StructScalar):
            return {name: _value(value) for name, value in scalar.items()}
        if isinstance(scalar, pa.MapScalar):
            return [tuple(_value(entry).values()) for entry in scalar.values]
        if isinstance(scalar, pa.ListScalar):
            return [_value(value) for value in scalar.values]
        if isinstance(scalar, pa.DictionaryScalar):
            return _value(scalar.value)
    try:
        return scalar.cast(pa.string()).as_py()
    except pa.ArrowException:  # a duration, or an unknown time zone
        return scalar.value
