"""Columns of predictions in pyarrow."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from spanwise.annotation.records import ENTITIES, RELATIONS
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
