"""The run folder: whether a training may write to it, and the report it leaves there."""

from __future__ import annotations

import json
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from spanwise import __version__
from spanwise.config import CONFIG, LABELS, WEIGHTS, Config
from spanwise.errors import SpanwiseError
from spanwise.formats.files import replacing
from spanwise.model import size
from spanwise.training.loop import METRICS, Trainer

REPORT = "run.json"
# What a killed write leaves behind begins with a dot and the name of the file (see ``replacing``).
_LEFTOVERS = tuple(f".{name}." for name in (CONFIG, LABELS, WEIGHTS, METRICS, REPORT))


def ready_folder(out: Path, resume: bool) -> None:
    """A folder that may be written to: new, empty, or one whose training is to go on."""
    if out.is_file():
        raise SpanwiseError(f"{out}: is a file, a run folder was expected")
    if (out / REPORT).is_file():
        advice = "nothing to resume" if resume else "choose another folder"
        raise SpanwiseError(f"{out}: holds a finished training ({REPORT} is there); {advice}")
    out.mkdir(parents=True, exist_ok=True)
    leftovers = [path for path in out.iterdir() if path.name.startswith(_LEFTOVERS)]
    if len(leftovers) < len(list(out.iterdir())):
        if not (out / CONFIG).is_file():
            raise SpanwiseError(f"{out}: is not empty and no run folder; choose another folder")
        if not resume:
            raise SpanwiseError(f"{out}: holds an unfinished training; --resume goes on with it, or choose another folder")
    for path in leftovers:
        shutil.rmtree(path, ignore_errors=True)


def report(trainer: Trainer, asked: Config, scores: dict[str, Any], notes: list[str], seconds: float) -> dict[str, Any]:
    """What ``run.json`` says of a finished training; ``asked`` are its settings before the data settled what they left open."""
    model, corpus = trainer.model, trainer.corpus
    fingerprints = trainer.identity["data"]
    return {
        "scores": scores,
        "recipe": model.config.recipe,
        "encoder": model.config.encoder,
        "seed": model.config.training.seed,
        "asked": asked.model_dump(mode="json"),
        "best_epoch": trainer.best_epoch,
        "epochs": trainer.epoch,
        "parameters": {"encoder": size(model.encoder), "head": size(model.head)},
        "corpus": corpus.name,
        "data": {split: {"sentences": len(corpus[split]), "fingerprint": fingerprints[split]} for split in corpus},
        "seconds": {"total": round(seconds, 3), "training": round(trainer.seconds, 3)},
        "device": trainer.device_name,
        "precision": trainer.precision,
        "notes": notes,
        "versions": {"spanwise": __version__, "python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in ("torch", "transformers", "accelerate", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def write_json(path: Path, value: Any) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
