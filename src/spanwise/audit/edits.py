"""Whether a person has edited a file of an audit since it was written."""

from __future__ import annotations

import hashlib
from pathlib import Path

from spanwise.audit.folder import AuditFolder


class EditedFiles:
    """The edited files of an audit, known by the digests of everything that was written, in the audit's record."""

    def __init__(self, folder: AuditFolder) -> None:
        self._folder = folder

    def has_edited(self, name: str) -> bool:
        """Whether a file or folder of this name has other content than the audit ever wrote."""
        path = self._folder.path / name
        record = self._folder.read_record()
        return path.exists() and (record is None or _digest(path) not in record.written.get(name, []))

    def record(self, path: Path) -> None:
        """Record a new file or folder before it replaces the old one, so that an interruption cannot come in between."""
        record = self._folder.read_record()
        assert record is not None  # written before the first file
        digests = [*record.written.get(path.name, []), _digest(path)]
        written = {**record.written, path.name: list(dict.fromkeys(digests))}
        self._folder.write_record(record.model_copy(update={"written": written}))


def _digest(path: Path) -> str:
    """A digest of a file, or of the names and contents in a folder; hidden files belong to other programs."""
    if path.is_file():
        return _file_digest(path)
    files = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
    parts = [f"{_file_digest(file)} {name}" for name, file in sorted(files.items()) if not file.name.startswith(".")]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
