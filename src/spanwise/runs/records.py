"""The records needed to resume a run or a group of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from spanwise.config.settings import Config
from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError
from spanwise.files.reading import read_json
from spanwise.files.writing import write_json


@dataclass(frozen=True)
class TrainingRecord:
    """The settings and data that a run was started with.

    ``config`` is the requested configuration, before automatic settings are resolved. ``data`` has a
    fingerprint of each split, ``init`` the run folder of the initial weights, ``conditions`` the number
    of threads, the device and the versions of libraries. ``teachers`` are the folders of the models
    that the run learns from (``spanwise distill``), and ``unlabelled`` the files of its unlabelled text.
    ``keep_types`` tells whether it keeps the types of ``init`` that the data does not annotate, and
    ``data_format`` is the format in which the data was read, if it was given.
    """

    config: Config
    data: Mapping[str, str]
    init: str | None = None
    conditions: Mapping[str, str | int] = field(default_factory=dict)
    teachers: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()
    keep_types: bool = False
    data_format: str | None = None

    @classmethod
    def read(cls, path: Path) -> TrainingRecord:
        """Read the record of an unfinished run."""
        values = read_json(path)
        record = cls._parse(path, values.get("config"), values.get("data"), values.get("init"), values.get("conditions"))
        teachers, unlabelled = (_paths(path, values.get(name)) for name in ("teachers", "unlabelled"))
        if not isinstance(data_format := values.get("data_format"), str | None):
            raise _unreadable(path, "the format of the data is not a string")
        return replace(
            record, teachers=teachers, unlabelled=unlabelled, keep_types=values.get("keep_types") is True,
            data_format=data_format,
        )  # fmt: skip

    @classmethod
    def read_report(cls, path: Path) -> TrainingRecord:
        """Read the same from the report of a finished run."""
        values = read_json(path)
        data = values.get("data")
        try:
            fingerprints = {split: str(row["fingerprint"]) for split, row in data.items()}  # type: ignore[union-attr]
        except (AttributeError, KeyError, TypeError) as error:
            raise _unreadable(path, repr(error)) from None
        return cls._parse(path, values.get("requested"), fingerprints, None)

    @classmethod
    def _parse(cls, path: Path, config: Any, data: Any, init: Any, conditions: Any = None) -> TrainingRecord:
        if config is None or not isinstance(data, Mapping):
            raise _unreadable(path, "configuration or data is missing")
        if conditions is not None and not isinstance(conditions, Mapping):
            raise _unreadable(path, "the conditions are not an object")
        return cls(validate_settings(Config, config, str(path)), dict(data), init, dict(conditions or {}))

    def write(self, path: Path) -> None:
        config = self.config.model_dump(mode="json")
        values = {
            "config": config, "data": self.data, "init": self.init, "conditions": self.conditions, "teachers": self.teachers,
            "unlabelled": self.unlabelled, "keep_types": self.keep_types, "data_format": self.data_format,
        }  # fmt: skip
        write_json(path, values)

    def check_same(self, folder: Path, config: Config, data: Mapping[str, str]) -> None:
        """Refuse to resume with other data or settings."""
        check_same(folder, self.config.model_dump(mode="json"), self.data, config.model_dump(mode="json"), data)


class RunGroup(BaseModel):
    """The settings that a group of runs was started with: seeds, grid or folds, the names of the runs, and a configuration.

    ``config`` is that of the first run. The others differ only in their seed or their point of the
    grid. The record stays after training, so that runs can be added.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    seeds: list[int] = []
    sweep: list[str] = []
    folds: Path | None = None
    runs: list[str]
    config: Config
    init: Path | None = None
    keep_types: bool = False
    data_format: str | None = None

    @classmethod
    def read(cls, path: Path) -> RunGroup | None:
        """Read the record; None where the file is missing."""
        return validate_settings(cls, read_json(path), str(path)) if path.is_file() else None

    def write(self, path: Path) -> None:
        write_json(path, self.model_dump(mode="json"))


def check_same(
    folder: Path, config: Mapping[str, Any], data: Mapping[str, str], new_config: Mapping[str, Any], new_data: Mapping[str, str]
) -> None:  # fmt: skip
    """Refuse to resume if data or settings have changed since the run was started.

    Data is checked first, because automatic settings depend on it.
    """
    for split in ("train", "dev", "unlabelled"):
        if data.get(split) != new_data.get(split):
            raise SpanwiseError(f"{folder}: cannot resume: the {split} data has changed since the run was started")
    if changed := sorted(_differences(config, new_config)):
        raise SpanwiseError(f"{folder}: cannot resume with changed settings: {', '.join(changed)}")


def check_same_init(
    folder: Path, record: TrainingRecord | RunGroup, init: str | Path | None, *, keep_types: bool
) -> None:  # fmt: skip
    """Refuse to resume with other initial weights (``--init``) or kept types; None and False mean the same as before."""
    if init is not None and (record.init is None or Path(init).absolute() != Path(record.init)):
        started = f"with --init {record.init}" if record.init else "without --init"
        raise SpanwiseError(f"{folder}: cannot resume with --init {init}: the run was started {started}")
    if keep_types and not record.keep_types:
        raise SpanwiseError(f"{folder}: cannot resume with --keep-types: the run was started without it")


def check_same_teachers(
    folder: Path, record: TrainingRecord, teachers: Sequence[str], unlabelled: Sequence[str]
) -> None:  # fmt: skip
    """Refuse to resume with other teachers or unlabelled text; no unlabelled text means the same."""
    if bool(record.teachers) != bool(teachers):
        command = "distill" if record.teachers else "train"
        raise SpanwiseError(f"{folder}: was started with spanwise {command}; resume it with that command")
    if tuple(teachers) != record.teachers:
        raise SpanwiseError(f"{folder}: cannot resume with other teachers; it was started with {', '.join(record.teachers)}")
    if unlabelled and tuple(unlabelled) != record.unlabelled:
        started = f"with {', '.join(record.unlabelled)}" if record.unlabelled else "without --unlabelled"
        raise SpanwiseError(f"{folder}: cannot resume with other unlabelled text; it was started {started}")


def _paths(path: Path, values: Any) -> tuple[str, ...]:
    if values is not None and not (isinstance(values, list) and all(isinstance(item, str) for item in values)):
        raise _unreadable(path, "teachers and unlabelled text are not lists of paths")
    return tuple(values or ())


def _differences(left: Any, right: Any, name: str = "") -> set[str]:
    """The dotted names of the settings that differ."""
    if not isinstance(left, Mapping) or not isinstance(right, Mapping):
        return set() if left == right else {name}
    keys = left.keys() | right.keys()
    return {path for key in keys for path in _differences(left.get(key), right.get(key), f"{name}.{key}".lstrip("."))}


def _unreadable(path: Path, problem: str) -> SpanwiseError:
    return SpanwiseError(f"{path}: not a valid training record ({problem})")
