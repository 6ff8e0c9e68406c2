"""The annotations that Label Studio has sent, in a file that survives a power cut.

Each line of ``annotations.jsonl`` is one change: an annotation that was saved, with its text, or one
that was deleted. The last change of an annotation is valid. A change that arrives twice is stored once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

from spanwise.core.errors import FormatError, SpanwiseError
from spanwise.core.types import Sentence
from spanwise.files.disk import DiskFullError, disk_full_problem, flush
from spanwise.files.reading import read_json_records
from spanwise.files.writing import to_json
from spanwise.formats import Ledger
from spanwise.label_studio.tasks import to_sentences

FILE_NAME = "annotations.jsonl"


@dataclass(frozen=True)
class Change:
    """An annotation that was saved, or with ``is_deleted`` its deletion. ``types`` are the labels of the project."""

    project: int
    annotation: int
    task: int | str | None = None
    text: str = ""
    result: Sequence[dict[str, Any]] = ()
    types: Sequence[str] = ()
    updated_at: str | None = None
    was_cancelled: bool = False
    ground_truth: bool = False
    is_deleted: bool = False

    def __post_init__(self) -> None:
        for name in ("result", "types"):  # lists in JSON; tuples can be compared with the default
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def key(self) -> tuple[int, int]:
        return self.project, self.annotation

    @property
    def document(self) -> str:
        return f"label-studio-{self.project}-{self.task}"

    @classmethod
    def from_json(cls, record: Any, path: Path, line: int) -> Change:
        if not isinstance(record, dict) or not record.keys() <= _KEYS or not record.keys() >= _REQUIRED:
            raise FormatError(path, line, "not a change of an annotation; restore the file from a backup or move it away")
        return cls(**record)

    def to_line(self) -> str:
        """The change as JSON, without empty values."""
        return to_json({key: value for key, value in asdict(self).items() if value or key in _REQUIRED})

    def sentences(self, path: Path, line: int, ledger: Ledger) -> Iterator[Sentence]:
        """Yield the annotated sentences; raise ``SpanwiseError`` if a region is invalid."""
        return to_sentences(self.document, self.text, [self._annotation()], path, line, ledger)

    def _annotation(self) -> dict[str, Any]:
        keys = ("result", "updated_at", "was_cancelled", "ground_truth")
        return {key: getattr(self, key) for key in keys} | {"result": list(self.result)}


_KEYS = {field.name for field in fields(Change)}
_REQUIRED = {"project", "annotation"}


class Collection:
    """Stores changes in a folder and returns the annotations that are valid. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._lock = threading.Lock()
        self._changes: list[tuple[int, int]] = []  # the annotation of each change
        self._latest: dict[tuple[int, int], Change] = {}
        _remove_torn_line(self.path)
        for change in read_changes(self.path):
            self._remember(change)
        flush(folder)

    @property
    def count(self) -> int:
        """The number of changes so far."""
        return len(self._changes)

    @property
    def annotations(self) -> int:
        """The number of annotations that are neither deleted nor cancelled."""
        return sum(not (change.is_deleted or change.was_cancelled) for change in self._latest_changes())

    def changed_since(self, count: int) -> int:
        """The number of annotations that were changed after the first ``count`` changes."""
        return len(set(self._changes[count:]))

    def of_task(self, project: int, task: int) -> list[int]:
        """The annotations of a task that are not deleted."""
        return [
            change.annotation
            for change in self._latest_changes()
            if (change.project, change.task) == (project, task) and not change.is_deleted
        ]

    def add(self, change: Change) -> bool:
        """Store a change; return False if it is already stored or older than what is stored."""
        with self._lock:
            if not self._is_new(change):
                return False
            self._append(change.to_line())
            self._remember(change)
            return True

    def _latest_changes(self) -> tuple[Change, ...]:
        """A copy, because another thread may store a change while this one is read; waiting for the disk would be slow."""
        return tuple(self._latest.values())

    def _is_new(self, change: Change) -> bool:
        stored = self._latest.get(change.key)
        if stored is None:
            return not change.is_deleted
        if stored.is_deleted or stored == change:
            return False
        return change.is_deleted or (change.updated_at or "") >= (stored.updated_at or "")

    def _append(self, line: str) -> None:
        size = self.path.stat().st_size
        try:
            with self.path.open("ab") as file:
                file.write(f"{line}\n".encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            os.truncate(self.path, size)  # no half line before the next one
            if problem := disk_full_problem(error):
                raise DiskFullError(self.path, problem) from None
            raise SpanwiseError(f"{self.path}: not written: {error.strerror or error}") from None

    def _remember(self, change: Change) -> None:
        self._changes.append(change.key)
        self._latest[change.key] = change


def read_changes(path: Path, count: int | None = None) -> Iterator[Change]:
    """Yield the first ``count`` changes of a file, or all."""
    for line, record in islice(read_json_records(path), count):
        yield Change.from_json(record, path, line)


def read_sentences(path: Path, count: int, ledger: Ledger) -> Iterator[tuple[Change, list[Sentence]]]:
    """Yield each annotated text after the first ``count`` changes with its sentences, in the order of the first change.

    If a task has several annotations, the ground truth or else the latest is used.
    """
    latest: dict[tuple[int, int], Change] = {}
    for change in read_changes(path, count):
        latest[change.key] = change
    tasks: dict[str, list[Change]] = {}
    for change in latest.values():
        if not change.is_deleted and not change.was_cancelled:
            tasks.setdefault(change.document, []).append(change)
    for changes in tasks.values():
        chosen = max(changes, key=lambda change: (change.ground_truth, change.updated_at or ""))
        yield chosen, list(chosen.sentences(path, 1, ledger))


def _remove_torn_line(path: Path) -> None:
    """Create the file if it is missing; remove an incomplete last line, which was never confirmed."""
    with path.open("ab+") as file:
        end = file.tell()
        position = end
        while position > 0:
            start = max(0, position - 65536)
            file.seek(start)
            if (line_end := file.read(position - start).rfind(b"\n")) >= 0:
                position = start + line_end + 1
                break
            position = start
        if position < end:
            file.truncate(position)
            file.flush()
            os.fsync(file.fileno())
