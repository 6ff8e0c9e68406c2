"""Rows of Hugging Face datasets in JSON: an array of rows, or one row per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spanwise.core.errors import FormatError
from spanwise.files.companions import DATASET_INFO
from spanwise.files.reading import read_json_records
from spanwise.formats.shared.sample import Sample


def is_json(path: Path) -> bool:
    """Return True for a file that starts like JSON."""
    return path.is_file() and Sample(path).text.lstrip()[:1] in ("{", "[")


def open_json_rows(path: Path) -> tuple[list[str], Any, Iterator[tuple[int | None, dict[str, Any]]]]:
    """Return the keys of the first records, the features in ``dataset_info.json``, and the rows with their lines."""
    keys = dict.fromkeys(key for record in Sample(path).dicts for key in record)
    return list(keys), _features(path.with_name(DATASET_INFO)), _rows(path)


def _rows(path: Path) -> Iterator[tuple[int | None, dict[str, Any]]]:
    for line, record in read_json_records(path):
        if not isinstance(record, dict):
            raise FormatError(path, line, f"expected an object with tokens and tags, found {record!r:.60}")
        yield line, record


def _features(path: Path) -> Any:
    """Return the features of the columns; None if there is no such file or it has other content."""
    try:
        return json.loads(path.read_bytes())["features"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
