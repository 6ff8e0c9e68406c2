"""The run folder: file names, state, records, and which files belong to it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from spanwise.config.settings import Config
from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError
from spanwise.files.locks import LOCK_NAME
from spanwise.files.reading import read_json
from spanwise.files.writing import atomic_output, write_json
from spanwise.runs.records import RunGroup, TrainingRecord
from spanwise.runs.writer import only_writer

# Summaries of groups of runs, and the names of the runs.
GROUPS = {"seeds": r"seed-\d+", "folds": r"fold-\d+", "sweep": r".+=.*"}

_CONFIG, _LABELS, _WEIGHTS = "config.yaml", "labels.json", "model.safetensors"
_TRAINING_RECORD, _REPORT, _METRICS, _CHECKPOINTS = "resume.json", "run.json", "metrics.jsonl", "checkpoints"
_TEACHER_OUTPUTS, _ONNX_RECORD, _GROUP_RECORD = "teacher_outputs.jsonl", "onnx.json", "runs.json"
_PROVENANCE = "provenance.json"
_GRAPHS = ("*.onnx", "*.onnx.data")
_MODEL_FILES = (
    _CONFIG, _LABELS, _WEIGHTS, _TRAINING_RECORD, _REPORT, _METRICS, _TEACHER_OUTPUTS, _ONNX_RECORD, _PROVENANCE,
    *_GRAPHS, LOCK_NAME,
)  # fmt: skip
_GROUP_FILES = (_GROUP_RECORD, *(f"{kind}.json" for kind in GROUPS), LOCK_NAME)
# Configurations, vocabularies and tokenizers, as the encoders and Transformers write them.
_ENCODER_FILES = (
    "static_encoder.json", "config.json", "tokenizer*.json", "*vocab*.json", "vocab.txt", "merges.txt", "bpe.codes", "*.model",
    "added_tokens.json", "special_tokens_map.json", "chat_template.jinja",
)  # fmt: skip
_ENCODER_PART = re.compile(r"part-\d+")  # the folder of one encoder of several


class RunState(Enum):
    """State of a folder. A run in progress and an interrupted one have the same files: both are unfinished."""

    EMPTY = "empty"  # or missing
    UNFINISHED = "unfinished"  # training was started, there is no report yet
    FINISHED = "finished"
    EXPORTED = "exported"  # a model without training files, in torch or ONNX
    GROUP = "group"  # several runs: seeds, folds, a sweep
    FOREIGN = "foreign"  # anything else


class RunFolder:
    """A folder with a trained model, or with the state of its training.

    >>> RunFolder("no/such/folder").state
    <RunState.EMPTY: 'empty'>
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    # --- files -------------------------------------------------------------------------------------------------------

    @property
    def config_file(self) -> Path:
        return self.path / _CONFIG

    @property
    def labels_file(self) -> Path:
        return self.path / _LABELS

    @property
    def weights_file(self) -> Path:
        return self.path / _WEIGHTS

    @property
    def report_file(self) -> Path:
        """Scores, settings, versions and timings of a finished run."""
        return self.path / _REPORT

    @property
    def metrics_file(self) -> Path:
        """Losses and dev scores, one line per epoch."""
        return self.path / _METRICS

    @property
    def record_file(self) -> Path:
        """The settings and data that an unfinished run was started with."""
        return self.path / _TRAINING_RECORD

    @property
    def teacher_outputs_file(self) -> Path:
        """The probabilities of teachers for the training sentences of an unfinished run."""
        return self.path / _TEACHER_OUTPUTS

    @property
    def checkpoints(self) -> Path:
        return self.path / _CHECKPOINTS

    @property
    def lock_file(self) -> Path:
        """Held by the process that trains in the folder; without meaning if no process holds it."""
        return self.path / LOCK_NAME

    @property
    def onnx_file(self) -> Path:
        """The record of a model that was exported to ONNX."""
        return self.path / _ONNX_RECORD

    @property
    def provenance_file(self) -> Path:
        """What an exported model records of its training data, in place of a report."""
        return self.path / _PROVENANCE

    @property
    def group_file(self) -> Path:
        """The settings that a group of runs was started with."""
        return self.path / _GROUP_RECORD

    def summary_file(self, kind: str) -> Path:
        """The scores of all runs of a group; ``kind`` is a key of ``GROUPS``."""
        return self.path / f"{kind}.json"

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> RunState:
        if self.report_file.is_file():
            return RunState.FINISHED
        if self.record_file.is_file():
            return RunState.UNFINISHED
        if self.is_run:
            return RunState.EXPORTED
        if self.is_group or self.runs():
            return RunState.GROUP
        is_empty = not self.path.exists() or (self.path.is_dir() and not set(self.path.iterdir()) - {self.lock_file})
        return RunState.EMPTY if is_empty else RunState.FOREIGN

    @property
    def has_model(self) -> bool:
        """Whether configuration and labels are there; weights appear after the first epoch."""
        return self.config_file.is_file() and self.labels_file.is_file()

    @property
    def is_onnx(self) -> bool:
        return self.onnx_file.is_file()

    @property
    def is_run(self) -> bool:
        """Whether the folder has a model, or a run that was started."""
        return self.has_model or self.is_onnx or self.is_started

    @property
    def is_started(self) -> bool:
        """Whether a run was started here, finished or not. Exported models contain no files of their training."""
        return self.record_file.is_file() or self.report_file.is_file()

    @property
    def is_unfinished(self) -> bool:
        """Whether a run was started here and has no report yet."""
        return self.record_file.is_file() and not self.report_file.is_file()

    @property
    def is_finished(self) -> bool:
        return self.report_file.is_file()

    @property
    def is_group(self) -> bool:
        """Whether the folder has a record or a summary of a group, and runs of it."""
        if not any((self.path / name).is_file() for name in _GROUP_FILES if name != LOCK_NAME):
            return False
        names = [run.path.name for run in self.runs()] + list(self.started_runs())
        return any(re.fullmatch(pattern, name) for pattern in GROUPS.values() for name in names)

    # --- contents ----------------------------------------------------------------------------------------------------

    def read_config(self) -> Config:
        from spanwise.files.yaml_files import read_yaml  # prediction with ONNX does not need YAML

        return validate_settings(Config, read_yaml(self.config_file), str(self.config_file))

    def write_config(self, config: Config) -> None:
        with atomic_output(self.config_file) as temporary:
            temporary.write_text(config.to_yaml(), encoding="utf-8")

    def save_thresholds(self, thresholds: Mapping[str, float]) -> None:
        """Save minimum scores by type in a finished or exported model; prediction then uses them by default."""
        if not self.is_run:
            raise SpanwiseError(f"{self.path}: no trained model here; thresholds are saved in run folders and exported models")
        with only_writer(self.path, lambda note: None):
            if self.is_unfinished:
                raise SpanwiseError(f"{self.path}: training is unfinished and would discard the thresholds; finish it first")
            if self.is_onnx:
                write_json(self.onnx_file, {**read_json(self.onnx_file), "thresholds": dict(thresholds)})
            else:
                self.write_config(self.read_config().model_copy(update={"thresholds": dict(thresholds)}))

    def read_report(self) -> dict[str, Any]:
        return read_json(self.report_file)

    def read_scores(self) -> dict[str, dict[str, Any]]:
        """The scores of a finished run, by split."""
        try:
            return {split: dict(scores) for split, scores in self.read_report()["scores"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SpanwiseError(f"{self.report_file}: not a valid report; no scores found ({error!r})") from None

    def read_record(self) -> TrainingRecord | None:
        """Read the record of an unfinished run; None if there is none."""
        return TrainingRecord.read(self.record_file) if self.record_file.is_file() else None

    def read_group(self) -> RunGroup | None:
        """Read the record of a group of runs; None if there is none."""
        return RunGroup.read(self.group_file)

    def runs(self) -> list[RunFolder]:
        """The runs in a group, seed-2 before seed-10."""
        folders = [file.parent for file in self.path.glob(f"*/{_CONFIG}")]
        return [RunFolder(folder) for folder in sorted(folders, key=lambda folder: (len(folder.name), folder.name))]

    def started_runs(self) -> set[str]:
        """The names of the runs of a group that were started."""
        return {folder.name for folder in self.path.iterdir() if RunFolder(folder).is_started} if self.path.is_dir() else set()

    def checkpoint_folders(self) -> list[Path]:
        """The checkpoints, in the order of their steps."""
        folders = [path for path in self.checkpoints.glob("step-*") if path.name[5:].isdigit()]
        return sorted(folders, key=lambda path: int(path.name[5:]))

    def remove_training_state(self) -> None:
        """Remove checkpoints, outputs of teachers and training record of a finished run: there is nothing left to resume."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)
        self.teacher_outputs_file.unlink(missing_ok=True)
        self.record_file.unlink(missing_ok=True)

    # --- ownership ---------------------------------------------------------------------------------------------------

    def owns(self, path: str | Path) -> bool:
        """Whether a path, existing or not, is a file of the run: model, encoder, training state or report.

        Links are followed. A user's own file in the folder is not owned.
        """
        path = Path(path)
        if not (self.is_run or self.is_group):
            return False
        folders, paths = {normalize(self.path), self.path.resolve()}, {normalize(path), path.resolve()}
        names = [p.relative_to(folder) for p in paths for folder in folders if folder in p.parents]
        if any(self._is_owned_name(name) for name in names):
            return True
        # Hard links, and file systems that ignore case.
        return path.is_file() and any(path.samefile(file) for file in self.files())

    def files(self) -> Iterator[Path]:
        """All files of the run; runs of a group have their own."""
        for pattern in (*_MODEL_FILES, *_ENCODER_FILES, *_GROUP_FILES, "part-*/**/*", f"{_CHECKPOINTS}/**/*"):
            for file in self.path.glob(pattern):
                if file.is_file() and self._is_owned_name(file.relative_to(self.path)):
                    yield file

    def _is_owned_name(self, name: Path) -> bool:
        first, *rest = name.parts
        if self.is_group and not rest and first in _GROUP_FILES:
            return True
        if not self.is_run:
            return False
        if first == _CHECKPOINTS:
            return True
        if _ENCODER_PART.fullmatch(first):  # parts may have parts
            return not rest or any(fnmatchcase(name.name, pattern) for pattern in (*_ENCODER_FILES, *_GRAPHS))
        return not rest and any(fnmatchcase(first, pattern) for pattern in (*_MODEL_FILES, *_ENCODER_FILES))


def normalize(path: Path) -> Path:
    """The absolute path without ``..``; unlike ``resolve`` it does not follow links."""
    return Path(os.path.normpath(path.absolute()))
