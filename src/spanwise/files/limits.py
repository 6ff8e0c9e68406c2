"""Limits on files from untrusted sources.

Real data never meets them. Hostile files do, before they exhaust memory or time: archives that
expand to gigabytes, settings that refer to themselves, models of absurd sizes.
"""

from __future__ import annotations

from pathlib import Path

from spanwise.core.errors import FormatError

MEGABYTE = 1 << 20
# A compressed file may expand to this many times its size; small files to at least MIN_EXPANDED_BYTES.
EXPANSION, MIN_EXPANDED_BYTES = 200, 64 * MEGABYTE
ROW_VALUES = 2_000_000  # values of one row of a table, such as tokens and tags
ROW_BYTES = 64 * MEGABYTE  # of one row, as text
TABLE_COLUMNS = 1000  # of a CSV or TSV file
DOCUMENT_TOKENS = 2_000_000  # of one document of a DocBin
XML_TOKEN_BYTES = MEGABYTE  # of one tag or comment, which is scanned again with every chunk
CONFIG_BYTES = 100_000  # of config.yaml, which has about one kilobyte
SUBWORD_IDS = 10_000_000  # of a tokenizer
# A model is built before its weights are read. It may need this many times the size of their file, and some buffers.
MODEL_EXPANSION, MODEL_BUFFER_BYTES = 4, 32 * MEGABYTE


def check_expansion(path: Path, compressed: int, expanded: int) -> None:
    """Refuse a file whose content is far larger than the file."""
    limit = max(EXPANSION * compressed, MIN_EXPANDED_BYTES)
    if expanded > limit:
        raise FormatError(
            path, None, f"expands to more than the limit of {megabytes(limit)}; the file has {compressed:,} bytes"
        )


def check_size(path: Path, limit: int) -> None:
    """Refuse a file that is larger than a limit in bytes."""
    if (size := path.stat().st_size) > limit:
        raise FormatError(path, None, f"has {size:,} bytes; the limit is {limit:,}")


def megabytes(count: int) -> str:
    """Describe a number of bytes.

    >>> megabytes(64 * MEGABYTE)
    '64 MB'
    """
    return f"{count // MEGABYTE:,} MB"
