"""Input files of an annotation: which there are, and how each is read."""

from __future__ import annotations

import glob
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from spanwise.annotation.arrow import import_pyarrow
from spanwise.core.errors import SpanwiseError
from spanwise.files.names import printable

PARQUET, JSONL, TEXT, WARC = "parquet", "jsonl", "text", "warc"
SUFFIXES = {
    ".parquet": PARQUET, ".pq": PARQUET, ".jsonl": JSONL, ".ndjson": JSONL, ".json": JSONL, ".txt": TEXT, ".text": TEXT,
    ".warc": WARC, ".wet": WARC,
}  # fmt: skip
COMPRESSIONS = (".gz", ".zst")
EXPECTED = f"expected {', '.join(SUFFIXES)}; lines also with {' or '.join(COMPRESSIONS)}, archives with .gz"


@dataclass(frozen=True, slots=True)
class Source:
    """An input file. ``name`` is its path below the input folder, without suffixes."""

    path: Path
    name: str
    format: str
    compression: str = ""

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    @property
    def is_one_shard(self) -> bool:
        """Whether the file can only be read from the start, and is therefore one shard of any size."""
        return bool(self.compression) or self.format == WARC

    def open(self) -> IO[bytes]:
        """Open the file for reading, decompressed."""
        if self.compression == ".gz":
            import gzip

            return gzip.open(self.path, "rb")  # type: ignore[return-value]
        if self.compression == ".zst":
            pa = import_pyarrow()
            return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(self.path)), "zstd"))
        return self.path.open("rb")


def find_sources(pattern: str, skipped: Path | None = None) -> list[Source]:
    """Return the input files of a file, a folder or a glob, in a stable order.

    Hidden files, files whose names start with ``_`` and files with other suffixes in a folder are skipped, and
    all files in the folder ``skipped``.
    """
    path = Path(pattern).expanduser()
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file() and not _is_hidden(file.relative_to(path))]
        sources = [source for file in _outside(files, skipped) if (source := _source(file, path))]
    elif path.exists():
        sources = [source for source in [_source(path, path.parent)] if source]
        if not sources:
            raise SpanwiseError(f"{path}: unknown suffix; {EXPECTED}")
    else:
        files = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207
        files = [file for file in files if file.is_file()]
        if not files and not glob.has_magic(pattern):
            raise SpanwiseError(f"{pattern}: no such file or folder")
        files = _outside(files, skipped)
        root = _common_folder(files)
        sources = [source for file in files if (source := _source(file, root))]
    if not sources:
        raise SpanwiseError(f"{pattern}: no files to annotate; {EXPECTED}")
    _check_names(sources)
    return sources


def _outside(files: Sequence[Path], folder: Path | None) -> list[Path]:
    return [file for file in files if folder is None or not file.resolve().is_relative_to(folder)]


def _source(path: Path, root: Path) -> Source | None:
    """The source of a file, or None if its suffix is unknown."""
    inner, compression = path, ""
    if path.suffix.lower() in COMPRESSIONS:
        inner, compression = path.with_suffix(""), path.suffix.lower()
    format = SUFFIXES.get(inner.suffix.lower())
    if format is None or (compression and format == PARQUET) or (compression == ".zst" and format == WARC):
        return None
    name = printable(inner.relative_to(root).with_suffix("").as_posix())
    return Source(path, name, format, compression)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts) or path.name.endswith("~")


def _common_folder(files: Sequence[Path]) -> Path:
    if not files:
        return Path()
    parents = [file.parent for file in files]
    return next(folder for folder in (parents[0], *parents[0].parents) if all(p.is_relative_to(folder) for p in parents))


def _check_names(sources: Sequence[Source]) -> None:
    by_name: dict[str, Path] = {}
    for source in sources:
        if other := by_name.get(source.name):
            raise SpanwiseError(f"{other} and {source.path} would have the same output; annotate them into separate folders")
        by_name[source.name] = source.path


def open_lines(source: Source, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that start in a range of bytes, with their first byte.

    A line belongs to the range in which it starts, so that ranges share no line and miss none.
    """
    with source.open() as file:
        offset = start
        if start:
            file.seek(start - 1)
            offset += len(file.readline()) - 1  # the rest of a line of the range before; only its line end at a border
        for line in file:
            if stop is not None and offset >= stop:
                break
            yield offset, line
            offset += len(line)
