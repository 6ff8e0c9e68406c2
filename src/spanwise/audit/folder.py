"""The folder of an audit: its files, its record, and the check whether it can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError
from spanwise.files.reading import read_json
from spanwise.files.work_folders import remove_leftovers
from spanwise.files.writing import write_json
from spanwise.runs.opening import create_folder
from spanwise.runs.outputs import check_output
from spanwise.runs.writer import only_writer


class AuditRecord(BaseModel):
    """The data and settings that an audit was started with, and the digests of each file that it wrote.

    ``config`` is the configuration of the models, and ``fingerprint`` that of the audited sentences.
    """

    spanwise: str
    data: str | None
    format: str | None
    split: str | None
    fingerprint: str
    folds: int = Field(ge=2)
    repeats: int = Field(ge=1)
    config: dict[str, Any]
    written: dict[str, list[str]] = {}


class AuditFolder:
    """File names in the folder of an audit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.record_file = path / "audit.json"
        self.scores = path / "folds"

    def read_record(self) -> AuditRecord | None:
        """Read the record; None where the file is missing."""
        if not self.record_file.is_file():
            return None
        return validate_settings(AuditRecord, read_json(self.record_file), str(self.record_file))

    def write_record(self, record: AuditRecord) -> None:
        write_json(self.record_file, record.model_dump())

    @contextmanager
    def open(self, data: str | Path | None, *, should_resume: bool, log: Callable[[str], None]) -> Iterator[None]:
        """Open the folder as its only writer. It must be new or empty, or have an audit to resume."""
        check_output(self.path, [] if data is None else [data])
        if self.path.exists() and not self.path.is_dir():
            raise SpanwiseError(f"{self.path}: expected a folder, found a file")
        with create_folder(self.path), only_writer(self.path, log):
            remove_leftovers(self.path)
            has_audit = self.record_file.is_file()
            if has_audit:
                if not should_resume:
                    advice = "pass --resume to continue it or to write its files again, or choose another folder"
                    raise SpanwiseError(f"{self.path}: contains an audit; {advice}")
            elif any(path.name != ".lock" for path in self.path.iterdir()):
                raise SpanwiseError(f"{self.path}: not empty and not an audit; choose another folder")
            elif should_resume:
                log(f"nothing to resume in {self.path}: starting a new audit")
            try:
                yield
            except SpanwiseError:
                if not has_audit:
                    self._remove_if_unused()
                raise

    def _remove_if_unused(self) -> None:
        """Remove the record of an audit that failed before its first model was trained."""
        with suppress(OSError):
            if self.scores.is_dir():
                self.scores.rmdir()  # fails if it is not empty
            self.record_file.unlink(missing_ok=True)


def check_same_audit(folder: Path, old: AuditRecord, new: AuditRecord) -> None:
    """Refuse to resume an audit with other data or settings."""
    names = {"fingerprint": "the data", "folds": "--folds", "repeats": "--repeats", "config": "the settings of the models"}
    for key, name in names.items():
        if getattr(old, key) != getattr(new, key):
            raise SpanwiseError(f"{folder}: cannot resume: {name} changed since the audit was started; choose another folder")
