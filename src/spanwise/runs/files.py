"""The files of a run folder."""

from __future__ import annotations

from pathlib import Path

import yaml

from spanwise.config.settings import Config
from spanwise.config.validation import validate_settings
from spanwise.core.errors import SpanwiseError

# The files of a run folder without which there is no model.
CONFIG, LABELS, WEIGHTS = "config.yaml", "labels.json", "model.safetensors"
# What a training began with, there until it ends, and then its report.
BEGAN, REPORT = "began.json", "run.json"
# What several runs in one folder began with.
ASKED = "asked.json"
# What an exported model has in the place of a configuration.
ONNX_RECORD = "onnx.json"
# What training and exporting write, an encoder's own files among it.
_OF_A_RUN = (
    CONFIG, LABELS, WEIGHTS, BEGAN, REPORT, "*.onnx", "*.jsonl", "*.txt", "*.model", "config.json", ONNX_RECORD,
    "static_encoder.json", "tokenizer*.json", "*vocab*.json", "*tokens*.json",
)  # fmt: skip


def is_run_folder(folder: Path) -> bool:
    """Whether a folder says that it holds a trained model."""
    return (folder / CONFIG).is_file() and (folder / LABELS).is_file()


def is_exported(folder: Path) -> bool:
    """Whether a folder holds a model that was exported to ONNX."""
    return (folder / ONNX_RECORD).is_file()


def is_unfinished(folder: Path) -> bool:
    """Whether a folder's training has begun and not ended. Exported models have neither file."""
    return (folder / BEGAN).is_file() and not (folder / REPORT).is_file()


def files_of_run(folder: Path) -> list[Path]:
    """The files of a run folder that are its own; others, results say, may lie beside them."""
    return [file for pattern in _OF_A_RUN for file in folder.glob(pattern)]


def runs_in(folder: Path) -> list[Path]:
    """The runs that a folder holds, as trainings with several seeds, folds or settings leave them; seed-2 before seed-10."""
    found = [run.parent for run in folder.glob(f"*/{CONFIG}")]
    return sorted(found, key=lambda run: (len(run.name), run.name))


def read_config(folder: Path) -> Config:
    """The configuration of a run folder."""
    try:
        values = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError) as error:
        raise SpanwiseError(f"{folder / CONFIG}: cannot be read: {' '.join(str(error).split())}") from None
    return validate_settings(Config, values, str(folder / CONFIG))
