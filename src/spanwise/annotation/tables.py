"""Batches of rows in the containers of other libraries; none of them is imported here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from spanwise.annotation.records import Columns
from spanwise.core.errors import SpanwiseError

Batch: TypeAlias = Any  # a dictionary of columns, a list of rows, a DataFrame, a pyarrow Table or RecordBatch
BatchT = TypeVar("BatchT")


def column_of(batch: Batch, name: str) -> list[Any]:
    """Return a column as a list; a missing value of a library (NaN, ``NA``) is None.

    >>> column_of({"text": ["a", None]}, "text"), column_of([{"text": "a"}, {}], "text")
    (['a', None], ['a', None])
    """
    if isinstance(batch, Sequence):
        return [row.get(name) for row in batch]
    names = _column_names(batch)
    if name not in names:
        raise SpanwiseError(f"no column {name!r}; the columns are {', '.join(map(str, names)) or 'none'}")
    column = batch[name]
    for method in ("to_pylist", "tolist"):
        if hasattr(column, method):
            column = getattr(column, method)()
    return [_plain(value) for value in column]


def with_columns(batch: BatchT, columns: Columns) -> BatchT:
    """Return the batch with more columns, in the same kind of container.

    >>> with_columns([{"text": "a"}], {"entities": [[]]})
    [{'text': 'a', 'entities': []}]
    """
    added = cast(Mapping[str, list[Any]], columns)
    if taken := [name for name in _column_names(batch) if name in added]:
        raise SpanwiseError(f"the rows already have a column {taken[0]!r}; rename it")
    if _is_arrow(batch):
        from spanwise.annotation.arrow import append_columns

        return cast(BatchT, append_columns(batch, added))
    if isinstance(batch, Sequence):
        rows = [{**row, **{name: values[index] for name, values in added.items()}} for index, row in enumerate(batch)]
        return cast(BatchT, rows)
    if isinstance(batch, Mapping):
        has_arrays = any(hasattr(column, "dtype") for column in batch.values())  # as in Ray
        return cast(BatchT, {**batch, **(_objects(added) if has_arrays else added)})
    import pandas  # type: ignore[import-untyped, unused-ignore]

    frame = cast(Any, batch)
    series = {name: pandas.Series(values, index=frame.index, dtype=object) for name, values in added.items()}
    return cast(BatchT, frame.assign(**series))


def _column_names(batch: Batch) -> list[Any]:
    if isinstance(batch, Sequence):
        return list(dict.fromkeys(name for row in batch for name in row))
    return list(batch if isinstance(batch, Mapping) else batch.schema.names if _is_arrow(batch) else batch.columns)


def _is_arrow(batch: Any) -> bool:
    return type(batch).__module__.partition(".")[0] == "pyarrow"


def _objects(columns: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Columns as NumPy arrays of objects, with lists as values."""
    import numpy as np

    arrays = {}
    for name, values in columns.items():
        arrays[name] = np.empty(len(values), object)
        arrays[name][:] = values
    return arrays


def _plain(value: Any) -> Any:
    """A value without the types of libraries: None for missing ones, lists for arrays."""
    if value is None or isinstance(value, str | list):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    return None if value != value or type(value).__name__ in ("NAType", "NaTType") else value
