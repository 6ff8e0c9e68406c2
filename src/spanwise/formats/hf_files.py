"""Rows of parquet files, arrow files, and the folders that ``datasets`` saves, a part at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanwise.core.errors import FormatError, SpanwiseError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1000


def pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise SpanwiseError("hf_dataset needs pyarrow: pip install 'spanwise[datasets]'") from None
    return pyarrow


def open_rows(path: Path) -> tuple[list[str], bytes, Iterator[list[dict[str, Any]]]]:
    """The columns of a data set, what ``datasets`` keeps of them (as JSON), and the rows, a thousand at a time."""
    files = _files(path) if path.is_dir() else [path]
    schema, first = _open(files[0])
    with _said(files[0]):
        return list(schema.names), (schema.metadata or {}).get(b"huggingface", b""), _rows(first, files)


def _rows(first: Iterator[pa.RecordBatch], files: list[Path]) -> Iterator[list[dict[str, Any]]]:
    for number, file in enumerate(files):
        batches = first if number == 0 else _open(file)[1]
        while True:
            with _said(file):
                batch = next(batches, None)
                if batch is None:
                    break
                batch.validate(full=True)
                rows = batch.to_pylist()
            yield rows


def _files(folder: Path) -> list[Path]:
    """The files of a saved data set, in order."""
    if (folder / "dataset_dict.json").is_file():
        splits = ", ".join(sorted(part.name for part in folder.iterdir() if part.is_dir()))
        raise FormatError(folder, None, f"holds several splits ({splits}); name the folder of one")
    state = folder / "state.json"
    try:
        known = json.loads(state.read_bytes()) if state.is_file() else {}
        names = [str(part["filename"]) for part in known.get("_data_files", ())]
        has_indices = bool(known.get("_indices_data_files"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FormatError(state, None, "is not what datasets writes: expected the names of data files") from None
    if has_indices:
        raise FormatError(state, None, "the rows are selected by an index file, as old versions of datasets did; save it anew")
    files = [folder / name for name in names] or sorted(folder.glob("*.arrow"))
    if not files:
        raise FormatError(folder, None, "no arrow files are in this folder")
    return files


def _open(file: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    with _said(file):
        with file.open("rb") as opened:
            magic = opened.read(6)
        if magic.startswith(b"PAR1"):
            return _parquet(file)
        return _arrow(file, is_stream=magic != b"ARROW1")


def _parquet(file: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    pyarrow()
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file)
    return parquet.schema_arrow, parquet.iter_batches(batch_size=ROWS)


def _arrow(file: Path, is_stream: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    arrow = pyarrow()
    source = arrow.memory_map(str(file))
    reader = arrow.ipc.open_stream(source) if is_stream else arrow.ipc.open_file(source)
    parts = reader if is_stream else map(reader.get_batch, range(reader.num_record_batches))
    return reader.schema, (batch.slice(start, ROWS) for batch in parts for start in range(0, batch.num_rows, ROWS))


@contextmanager
def _said(file: Path) -> Iterator[None]:
    """What pyarrow says of a broken file, said as an error of the file."""
    arrow = pyarrow()
    try:
        yield
    except SpanwiseError:
        raise
    except (arrow.ArrowException, OSError, ValueError, TypeError, KeyError, NotImplementedError) as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FormatError(file, None, f"not a parquet or arrow file, or a broken one: {said}") from None
