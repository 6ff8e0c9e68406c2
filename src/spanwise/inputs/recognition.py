"""Recognition of data in ``.txt`` files and standard input, which are raw text by default."""

from __future__ import annotations

import io
from typing import IO, Any

from spanwise.formats import Ledger
from spanwise.formats.conll_layout import guess_layout
from spanwise.formats.registry import possible_formats
from spanwise.formats.shared.sample import SAMPLE_BYTES, Sample

TEXT_RECORDS = "JSON records with a text"
_MIN_ROWS = 5  # a text of a few lines may end each line in a word that looks like a tag, such as "vitamin B-12"


def recognise(sample: Sample) -> str | None:
    """Return the format of the content (or ``TEXT_RECORDS``) if plain text cannot look like it, else None."""
    for format in possible_formats(sample):
        if format.name == "brat" or not format.can_read(is_folder=False) or not format.sniff(sample):
            continue
        return format.name if format.name != "conll" or _has_clear_columns(sample) else None
    return TEXT_RECORDS if has_text_records(sample) else None


def _has_clear_columns(sample: Sample) -> bool:
    """Return True for columns of words and tags with tabs, or with spaces and complete tags on many lines."""
    layout, rows = guess_layout(sample.lines), [line for line in sample.lines if line.strip()]
    if layout is None or len(rows) < _MIN_ROWS or not any(line.rstrip().endswith("O") for line in rows):
        return False
    return all("\t" in line for line in rows) or not layout.is_plain


def has_text_records(sample: Sample) -> bool:
    """Return True if the file holds JSON records with a ``text`` each."""
    records = sample.records
    return bool(records) and all(isinstance(record, dict) and isinstance(record.get("text"), str) for record in records)


def note_recognised(ledger: Ledger | None, format: str) -> None:
    if ledger is not None:
        ledger.note(f"inputs read as {format}, because of their content (pass --from text for raw text)")


def sample_stream(file: IO[bytes]) -> tuple[Sample, IO[bytes]]:
    """Return the first available bytes of a stream as a sample, and a stream that starts with them.

    A stream that arrives line by line is judged by its first lines.
    """
    head = file.read1(SAMPLE_BYTES)  # type: ignore[attr-defined]
    whole_lines = head[: head.rfind(b"\n") + 1] or head
    return Sample.from_bytes(whole_lines), io.BufferedReader(_Prefixed(head, file))


class _Prefixed(io.RawIOBase):
    """A stream whose first bytes were already read."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._head or self._rest.read1(len(buffer))  # type: ignore[attr-defined]
        taken, self._head = piece[: len(buffer)], piece[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)
