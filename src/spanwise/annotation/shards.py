"""Split inputs into shards: the units that are annotated, written and recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanwise.annotation.arrow import import_pyarrow
from spanwise.annotation.sources import PARQUET, Source

MIN_SHARD, MAX_SHARD = 1 << 20, 32 << 20  # bytes of a shard
SHARDS = 64  # an input is split into about this many shards, so that many processes have work


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of an input file: rows of a parquet file, bytes of a text file, or a whole compressed file.

    ``stop`` is None for the last part of a text file.
    """

    source: Source
    start: int
    stop: int | None
    name: str  # of its output, without suffix

    @property
    def fingerprint(self) -> str:
        """Identity of the content without reading it: path, size, time of change and range."""
        state = self.source.path.stat()
        parts = (self.source.path.resolve(), state.st_size, state.st_mtime_ns, self.start, self.stop)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]

    @property
    def size(self) -> int:
        """About how many bytes it has, for progress."""
        if self.source.format == PARQUET or self.source.is_one_shard:
            return self.source.size
        return (self.stop or self.source.size) - self.start


def choose_shard_size(sources: Iterable[Source]) -> int:
    """The size of shards in bytes: small enough for many processes, large enough for few files.

    >>> choose_shard_size([])
    1048576
    """
    total = sum(source.size for source in sources)
    return min(max(total // SHARDS, MIN_SHARD), MAX_SHARD)


def plan_shards(sources: Iterable[Source], shard_size: int) -> list[Shard]:
    """Split all files into shards of about ``shard_size`` bytes; the same files always give the same shards.

    A compressed text file is one shard, because it can only be read from the start; so is
    a web archive.
    """
    return [
        Shard(source, start, stop, f"{source.name}-{index:05}")
        for source in sources
        for index, (start, stop) in enumerate(_ranges(source, shard_size))
    ]


def _ranges(source: Source, shard_size: int) -> Iterator[tuple[int, int | None]]:
    if source.format == PARQUET:
        rows, size = _parquet_size(source.path)
        if not rows:  # empty or damaged; reading it reports which
            yield 0, None
            return
        step = max(1, rows * shard_size // max(size, 1))
        count = max(1, round(rows / step))
        yield from ((rows * index // count, rows * (index + 1) // count) for index in range(count))
    elif source.is_one_shard:
        yield 0, None
    else:
        count = max(1, round(source.size / shard_size))
        borders = [source.size * index // count for index in range(count)]
        yield from zip(borders, [*borders[1:], None], strict=True)


def _parquet_size(path: Path) -> tuple[int, int]:
    """The number of rows and bytes of a parquet file, uncompressed; zeros if it cannot be read."""
    pa = import_pyarrow()
    try:
        metadata: Any = pa.parquet.read_metadata(path)
    except (OSError, pa.ArrowException):
        return 0, 0
    return metadata.num_rows, sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
