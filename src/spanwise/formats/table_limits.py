"""Limits on parquet and arrow files, whose encodings can store gigabytes in a kilobyte."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanwise.core.errors import FormatError
from spanwise.files.limits import ROW_BYTES, ROW_VALUES, check_expansion, megabytes
from spanwise.formats.parquet_footer import column_sizes

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_VALUE_BYTES = 4  # of a repeated value in memory


def check_parquet(file: Path) -> None:
    """Refuse a file that expands too much, by its metadata."""
    expanded = sum(max(size, 0) + _VALUE_BYTES * max(values, 0) for values, size in column_sizes(file))
    check_expansion(file, file.stat().st_size, expanded)


def text_columns(parquet: pq.ParquetFile) -> list[str]:
    """The paths of the columns of texts."""
    columns = map(parquet.schema.column, range(len(parquet.schema)))
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def split_batch(batch: pa.RecordBatch, file: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch in parts of bounded size; a row that is larger is an error."""
    values, text = map(sum, zip(*map(_size, batch.columns), strict=True)) if batch.num_columns else (0, 0)
    if values <= ROW_VALUES and text <= ROW_BYTES:
        yield batch
    elif batch.num_rows > 1:
        middle = batch.num_rows // 2
        yield from split_batch(batch.slice(0, middle), file)
        yield from split_batch(batch.slice(middle), file)
    else:
        limits = f"{ROW_VALUES:,} values and {megabytes(ROW_BYTES)}"
        raise FormatError(file, None, f"a row has {values:,} values and {megabytes(text)} of text; the limits are {limits}")


def _size(array: Any) -> tuple[int, int]:
    """The number of values of an array as Python objects, and the bytes of its texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _size(array.storage)
    if isinstance(array, pa.DictionaryArray):
        words = array.dictionary
        if not (pa.types.is_string(words.type) or pa.types.is_large_string(words.type) or pa.types.is_binary(words.type)):
            return len(array) * (1 + _size(words)[0]), len(array) * _size(words)[1]  # an upper bound
        lengths = pc.binary_length(words).take(array.indices)
        return len(array), pc.sum(lengths).as_py() or 0
    if isinstance(array, pa.RunEndEncodedArray):
        values, text = _size(array.values)
        return len(array) * (1 + values), len(array) * text
    if isinstance(array, pa.StructArray):
        sizes = [_size(field) for field in array.flatten()]
        return len(array) + sum(values for values, _ in sizes), sum(text for _, text in sizes)
    if isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray | pa.ListViewArray | pa.LargeListViewArray):
        values, text = _size(array.flatten())
        return len(array) + values, text
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return len(array), pc.sum(pc.binary_length(array.cast(pa.large_binary()))).as_py() or 0
    return len(array), array.nbytes


def check_arrow(file: Path, is_stream: bool) -> None:
    """Refuse a file with compressed buffers that expand too much. The size of a buffer is before its data."""
    import pyarrow as pa

    expanded = 0
    with pa.memory_map(str(file)) as source:
        source.seek(0 if is_stream else 8)
        try:
            for message in pa.ipc.MessageReader.open_stream(source):
                if message.type in ("record batch", "dictionary"):
                    expanded += _message_size(message)
                    check_expansion(file, file.stat().st_size, expanded)
        except (struct.error, pa.ArrowException):
            return  # a damaged file, or the footer of an old version: the reader reports it


def _message_size(message: Any) -> int:
    """The size of the buffers of a message after decompression.

    See ``Message.fbs`` of Arrow for the numbers of the fields.
    """
    data, body = memoryview(message.metadata), message.body
    batch = _field(data, struct.unpack_from("<I", data)[0], 2)
    if message.type == "dictionary":
        batch = batch and _field(data, batch, 1)
    if not batch or not _field(data, batch, 3) or body is None:  # no compression
        return 0
    buffers = _field(data, batch, 2)
    count = struct.unpack_from("<I", data, buffers)[0]
    numbers = struct.unpack_from(f"<{2 * min(count, 1 << 20)}q", data, buffers + 4)
    size = 0
    for offset, length in list(pairwise(numbers))[::2]:
        if length >= 8:
            size += max(struct.unpack_from("<q", body, offset)[0], 0)
    return size


def _field(data: memoryview, table: int, number: int) -> int:
    """The position of a field of a flatbuffer table that is a table or vector; 0 if it is missing."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if vtable < 0 or 4 + 2 * number >= struct.unpack_from("<H", data, vtable)[0]:
        return 0
    offset = struct.unpack_from("<H", data, vtable + 4 + 2 * number)[0]
    return table + offset + struct.unpack_from("<I", data, table + offset)[0] if offset else 0
