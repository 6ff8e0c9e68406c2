"""The output folder of an annotation: settings, finished shards and failed rows.

Names that start with ``_`` are ignored by parquet readers: ``_annotation.json`` has the settings,
``_done`` a marker for each finished shard, ``_errors`` the failed rows, ``_started`` notes of shards in
progress.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from spanwise.annotation.shards import Shard
from spanwise.core.errors import SpanwiseError
from spanwise.files.locks import LOCK_NAME, hold_lock
from spanwise.files.reading import read_json
from spanwise.files.work_folders import remove_leftovers
from spanwise.files.writing import write_json

SETTINGS = "_annotation.json"


@dataclass(frozen=True, slots=True)
class ShardResult:
    """The counts of a finished shard; ``rows`` are those with predictions, ``errors`` those without."""

    rows: int = 0
    errors: int = 0
    words: int = 0
    entities: int = 0
    relations: int = 0

    def __add__(self, other: ShardResult) -> ShardResult:
        mine, theirs = asdict(self), asdict(other)
        return ShardResult(**{name: mine[name] + theirs[name] for name in mine})


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The output folder. ``suffix`` is that of its shards."""

    path: Path
    suffix: str

    def data_file(self, shard: Shard) -> Path:
        return self.path / f"{shard.name}{self.suffix}"

    def errors_file(self, shard: Shard) -> Path:
        return self.path / "_errors" / f"{shard.name}.jsonl"

    def marker_file(self, shard: Shard) -> Path:
        return self.path / "_done" / f"{shard.name}.json"

    def note_file(self, shard: Shard) -> Path:
        return self.path / "_started" / f"{shard.name}.json"

    @staticmethod
    def is_job(path: Path) -> bool:
        """Whether a folder is the output of an annotation."""
        return (path / SETTINGS).is_file()

    def open(self, settings: Mapping[str, Any]) -> None:
        """Create the folder, or check that it was annotated with the same settings."""
        file = self.path / SETTINGS
        if self.path.exists() and not self.path.is_dir():
            raise SpanwiseError(f"{self.path}: expected a folder, found a file")
        if file.is_file() and not self._is_unused():
            previous = read_json(file)
            for name in [*previous, *settings]:
                if previous.get(name) != settings.get(name):
                    raise SpanwiseError(
                        f"{self.path}: was annotated with another {name.replace('_', ' ')} ({_short(previous.get(name))}, "
                        f"now {_short(settings.get(name))}); pass the same settings to resume, or choose another folder"
                    )
        else:
            if self.path.is_dir() and not self._is_unused():
                raise SpanwiseError(f"{self.path}: the folder is not empty; choose another folder")
            self.path.mkdir(parents=True, exist_ok=True)
            write_json(file, settings)

    def _is_unused(self) -> bool:
        """Whether the folder has no files except settings, as after a command that failed at once."""
        files = (path for path in self.path.rglob("*") if not path.is_dir())
        return all(path in (self.path / SETTINGS, self.path / LOCK_NAME) for path in files)

    def read_setting(self, name: str) -> Any:
        """Return a setting of an earlier run; None if there was none."""
        file = self.path / SETTINGS
        return read_json(file).get(name) if file.is_file() else None

    def finished(self, shard: Shard) -> ShardResult | None:
        """Return the counts of a shard that is finished; refuse one whose input has changed since."""
        try:
            marker = json.loads(self.marker_file(shard).read_bytes())
            fingerprint, counts = marker.pop("fingerprint"), ShardResult(**marker)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError, KeyError, AttributeError):  # damaged; the shard is annotated again
            return None
        if fingerprint != shard.fingerprint:
            raise SpanwiseError(
                f"{shard.source.path}: has changed since it was annotated into {self.path}; choose another folder"
            )
        return counts if not counts.rows or self.data_file(shard).is_file() else None

    def finish(self, shard: Shard, result: ShardResult, fingerprint: str) -> None:
        """Record that a shard is finished. Its files are already in place."""
        write_json(make_parent(self.marker_file(shard)), {"fingerprint": fingerprint, **asdict(result)})
        with suppress(FileNotFoundError):
            self.note_file(shard).unlink()

    def check_stray_files(self, shards: Iterable[Shard]) -> None:
        """Refuse to resume if the folder has shards of files that are no longer in the input."""
        known = {self.marker_file(shard) for shard in shards}
        for marker in sorted((self.path / "_done").rglob("*.json")):
            if marker not in known:
                name = marker.relative_to(self.path / "_done").with_suffix("")
                raise SpanwiseError(
                    f"{self.path}: has the shard {name}, which is not part of this input; pass the same input or choose "
                    "another folder"
                )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let only one command at a time annotate into the folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        with hold_lock(self.path, "is annotating into this folder; wait for it or stop it"):
            remove_leftovers(self.path)  # settings that a killed process did not finish
            yield


def make_parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _short(value: Any) -> str:
    text = "default" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:12]}…"
