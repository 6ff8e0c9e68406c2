"""Rows of parquet files, arrow files and saved ``datasets`` folders, in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.formats.table_limits import check_arrow, check_parquet, split_batch, text_columns

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_SIZE = 1000


def pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise SpanwiseError("hf_dataset requires pyarrow; run pip install 'spanwise[datasets]'") from None
    return pyarrow


def open_rows(path: Path) -> tuple[list[str], Any, Iterator[tuple[int | None, dict[str, Any]]]]:
    """Return the columns of a dataset, their features as ``datasets`` stores them, and the rows (without lines)."""
    files = _find_files(path) if path.is_dir() else [path]
    schema, first = _open(files[0])
    with _report_errors(files[0]):
        return list(schema.names), _features(schema), _rows(first, files)


def _features(schema: pa.Schema) -> Any:
    try:
        return json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _rows(first: Iterator[pa.RecordBatch], files: list[Path]) -> Iterator[tuple[int | None, dict[str, Any]]]:
    for number, file in enumerate(files):
        batches = first if number == 0 else _open(file)[1]
        while True:
            with _report_errors(file):
                batch = next(batches, None)
                if batch is None:
                    break
                batch.validate(full=True)
            for part in split_batch(batch, file):
                with _report_errors(file):
                    rows = part.to_pylist()
                for row in rows:
                    yield None, row


def _find_files(folder: Path) -> list[Path]:
    """Return the files of a saved dataset in order."""
    if (folder / "dataset_dict.json").is_file():
        splits = ", ".join(sorted(part.name for part in folder.iterdir() if part.is_dir()))
        raise FormatError(folder, None, f"contains several splits ({splits}); choose the folder of one")
    state = folder / "state.json"
    try:
        values = json.loads(state.read_bytes()) if state.is_file() else {}
        names = [str(part["filename"]) for part in values.get("_data_files", ())]
        has_indices = bool(values.get("_indices_data_files"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FormatError(state, None, "not a state file of datasets; expected the names of data files") from None
    if has_indices:
        raise FormatError(state, None, "selects rows by an index file, as old versions of datasets did; save the dataset again")
    if outside := [name for name in names if Path(name).name != name or name == ".."]:
        raise FormatError(state, None, f"points outside its folder: {outside[0]!r}; expected the name of a file")
    files = [folder / name for name in names] or sorted(folder.glob("*.arrow"))
    if not files:
        raise FormatError(folder, None, "no arrow files in this folder")
    return files


def _open(file: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    with _report_errors(file):
        with file.open("rb") as opened:
            magic = opened.read(6)
        if magic.startswith(b"PAR1"):
            return _parquet(file)
        return _arrow(file, is_stream=magic != b"ARROW1")


def _parquet(file: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    pyarrow()
    import pyarrow.parquet as pq

    check_parquet(file)
    with pq.ParquetFile(file) as parquet:
        texts = text_columns(parquet)
    # A word that is stored once stays one value until a row is read.
    parquet = pq.ParquetFile(file, read_dictionary=texts)
    return parquet.schema_arrow, parquet.iter_batches(batch_size=BATCH_SIZE)


def _arrow(file: Path, is_stream: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    arrow = pyarrow()
    check_arrow(file, is_stream)
    source = arrow.memory_map(str(file))
    reader = arrow.ipc.open_stream(source) if is_stream else arrow.ipc.open_file(source)
    parts = reader if is_stream else map(reader.get_batch, range(reader.num_record_batches))
    return reader.schema, (batch.slice(start, BATCH_SIZE) for batch in parts for start in range(0, batch.num_rows, BATCH_SIZE))


@contextmanager
def _report_errors(file: Path) -> Iterator[None]:
    """Turn exceptions of pyarrow into ``FormatError``."""
    arrow = pyarrow()
    try:
        yield
    except SpanwiseError:
        raise
    except (arrow.ArrowException, OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        message = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FormatError(file, None, f"not a valid parquet or arrow file: {message}") from None
