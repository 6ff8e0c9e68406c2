"""Read the rows of a shard in batches."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from spanwise.annotation.arrow import import_pyarrow, to_rows
from spanwise.annotation.records import ENTITIES, RELATIONS, Row
from spanwise.annotation.shards import Shard
from spanwise.annotation.sources import PARQUET, TEXT, WARC, open_lines
from spanwise.annotation.warc import ParsedRow, read_archive
from spanwise.core.errors import FormatError, SpanwiseError

ROWS, TEXT_BYTES = 2048, 8 << 20  # of a batch: the first limit that is reached; parquet uses the mean size of rows


class ColumnError(FormatError):
    """A file without the text column, or with a column that would be overwritten."""


@dataclass
class Rows(ABC):
    """Consecutive rows of a shard.

    ``places`` are row numbers of a parquet file or first bytes of lines; ``problems`` are the reasons
    why some rows (by index) could not be read.
    """

    texts: list[Any]
    places: list[int]
    problems: dict[int, str] = field(default_factory=dict)

    @abstractmethod
    def records(self, indices: Sequence[int]) -> list[Row]:
        """Return some rows as dictionaries."""


@dataclass
class ArrowRows(Rows):
    """Rows of a parquet file; all columns keep their types."""

    all_rows: Any = None  # a pyarrow ``Table``

    def records(self, indices: Sequence[int]) -> list[Row]:
        return to_rows(self.table(indices))

    def table(self, indices: Sequence[int]) -> Any:
        """Return some rows, in ascending order, as a pyarrow ``Table``."""
        # Slices of consecutive rows: ``Table.take`` does not support all types.
        runs = [[index for _, index in run] for _, run in groupby(enumerate(indices), lambda pair: pair[1] - pair[0])]
        slices = [self.all_rows.slice(run[0], len(run)) for run in runs]
        return import_pyarrow().concat_tables(slices) if slices else self.all_rows.slice(0, 0)


@dataclass
class JsonRows(Rows):
    """Rows of JSON lines or text."""

    rows: list[Row] = field(default_factory=list)

    def records(self, indices: Sequence[int]) -> list[Row]:
        return [self.rows[index] for index in indices]


def read_rows(shard: Shard, text_column: str) -> Iterator[Rows]:
    """Yield the rows of a shard in batches. A damaged file raises ``FormatError``; a damaged line is a problem of its row."""
    try:
        if shard.source.format == PARQUET:
            yield from _parquet_rows(shard, text_column)
        elif shard.source.format == WARC:
            yield from _in_batches(read_archive(shard.source, text_column), text_column)
        else:
            yield from _in_batches(_line_rows(shard, text_column), text_column)
    except SpanwiseError:
        raise
    except Exception as error:  # gzip, zstandard and pyarrow raise many kinds of errors
        if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
            raise FormatError(shard.source.path, None, f"cannot be read: {error.strerror}") from None
        problem = " ".join(str(error).split()) or type(error).__name__
        raise FormatError(shard.source.path, None, f"cannot be read ({problem}); the file may be damaged") from None


def _parquet_rows(shard: Shard, text_column: str) -> Iterator[Rows]:
    pa = import_pyarrow()
    with pa.parquet.ParquetFile(shard.source.path) as file:
        names = file.schema_arrow.names
        check_columns(names, text_column, str(shard.source.path))
        groups, first = _groups(file.metadata, shard.start, shard.stop)
        for batch in file.iter_batches(batch_size=_batch_rows(file.metadata), row_groups=groups):
            start, stop = max(shard.start - first, 0), len(batch) if shard.stop is None else shard.stop - first
            part = batch.slice(start, max(0, min(stop, len(batch)) - start))
            if len(part):
                texts = part.column(names.index(text_column)).to_pylist()
                places = list(range(first + start, first + start + len(part)))
                yield ArrowRows(texts, places, all_rows=pa.Table.from_batches([part]))
            first += len(batch)
        if not file.metadata.num_rows:  # the output has the same columns
            yield ArrowRows([], [], all_rows=file.schema_arrow.empty_table())


def _batch_rows(metadata: Any) -> int:
    """The number of rows that have about ``TEXT_BYTES``, at most ``ROWS``."""
    size = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    rows: int = metadata.num_rows * TEXT_BYTES // max(1, size)
    return min(ROWS, max(1, rows))


def _groups(metadata: Any, start: int, stop: int | None) -> tuple[list[int], int]:
    """The row groups that hold a range of rows, and the first row of the first of them."""
    groups: list[int] = []
    first_row = row = 0
    for group in range(metadata.num_row_groups):
        end = row + metadata.row_group(group).num_rows
        if end > start and (stop is None or row < stop):
            if not groups:
                first_row = row
            groups.append(group)
        row = end
    return groups, first_row


def check_columns(names: Sequence[str], text_column: str, source: str) -> None:
    """Check that the text column exists and that no column would be overwritten."""
    if text_column not in names:
        raise ColumnError(source, None, f"no column {text_column!r}; pass --text-column with one of {', '.join(names)}")
    for name in (ENTITIES, RELATIONS):
        if name in names:
            raise ColumnError(source, None, f"already has a column {name!r}; rename it")


def _line_rows(shard: Shard, text_column: str) -> Iterator[ParsedRow]:
    parse = _parse_text if shard.source.format == TEXT else _parse_json
    for place, line in open_lines(shard.source, shard.start, shard.stop):
        if place == 0:
            line = line.removeprefix(BOM_UTF8)
        if line.strip() or shard.source.format == TEXT:
            row, problem = parse(line, text_column)
            yield place, row, problem, len(line)


def _in_batches(parsed: Iterable[ParsedRow], text_column: str) -> Iterator[Rows]:
    rows, size = JsonRows([], []), 0
    for place, row, problem, row_size in parsed:
        if problem is not None:
            rows.problems[len(rows.rows)] = problem
        rows.rows.append(row)
        rows.places.append(place)
        rows.texts.append(row.get(text_column))
        size += row_size
        if len(rows.rows) >= ROWS or size >= TEXT_BYTES:
            yield rows
            rows, size = JsonRows([], []), 0
    if rows.rows:
        yield rows


def _parse_text(line: bytes, text_column: str) -> tuple[Row, str | None]:
    try:
        return {text_column: line.decode("utf-8").removesuffix("\n").removesuffix("\r")}, None
    except UnicodeDecodeError as error:
        return _undecodable(line), f"not UTF-8 at byte {error.start + 1} of the line"


def _parse_json(line: bytes, text_column: str) -> tuple[Row, str | None]:
    try:
        row = json.loads(line)
    except UnicodeDecodeError as error:
        return _undecodable(line), f"not UTF-8 at byte {error.start + 1} of the line"
    except (ValueError, RecursionError) as error:
        return _undecodable(line), f"not valid JSON: {error}"
    if not isinstance(row, dict):
        return {"line": row}, f"expected a JSON object, found {type(row).__name__}"
    if text_column not in row:
        return row, f"no column {text_column!r}"
    taken = [name for name in (ENTITIES, RELATIONS) if name in row]
    return row, f"already has a column {taken[0]!r}" if taken else None


def _undecodable(line: bytes) -> Row:
    """A line that cannot be parsed, with an escape for each invalid byte."""
    return {"line": line.decode("utf-8", "backslashreplace").rstrip("\r\n")}
