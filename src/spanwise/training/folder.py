"""The run folder: whether a training may write to it, and the report it leaves there."""

from __future__ import annotations

import json
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from spanwise.config.settings import Config
from spanwise.core.errors import SpanwiseError
from spanwise.core.version import __version__
from spanwise.files.writing import atomic_output
from spanwise.models.model import size
from spanwise.runs.files import BEGAN, CONFIG, LABELS, REPORT, WEIGHTS, runs_in
from spanwise.training.loop import METRICS, Trainer

# What trainings of several runs leave beside them, and what these are called.
SEVERAL = {"seeds": r"seed-\d+", "folds": r"fold-\d+", "sweep": r".+=.*"}
_UNFINISHED = "holds an unfinished training; --resume goes on with it, or choose another folder"
# What a killed write leaves behind begins with a dot and the name of the file (see ``atomic_output``).
_LEFTOVERS = tuple(f".{name}." for name in (BEGAN, CONFIG, LABELS, WEIGHTS, METRICS, REPORT))


@contextmanager
def ready_folder(out: Path, resume: bool) -> Iterator[None]:
    """A folder that may be written to: new, empty, or one whose training is to go on.

    One that is made for a training which then fails before it has written anything is not left there.
    """
    _check_no_run(out, resume)
    with new_folder(out):
        _tidy(out, resume)
        yield


@contextmanager
def new_folder(out: Path) -> Iterator[None]:
    """A folder, made where it is not there; one that was made, and is empty when something fails, is not left there."""
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    out.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # one is not empty
            for folder in made:
                folder.rmdir()
        raise


def _check_no_run(out: Path, resume: bool) -> None:
    """Refuse what is no folder and what holds a finished run."""
    if out.is_file():
        raise SpanwiseError(f"{out}: is a file, a run folder was expected")
    if (out / REPORT).is_file():
        advice = "nothing to resume" if resume else "choose another folder"
        raise SpanwiseError(f"{out}: holds a finished training ({REPORT} is there); {advice}")


def _tidy(out: Path, resume: bool) -> None:
    """Remove what killed writes have left, where nothing else is there or a training that is to go on."""
    leftovers = [path for path in out.iterdir() if path.name.startswith(_LEFTOVERS)]
    if len(leftovers) < len(list(out.iterdir())):
        if not is_begun(out):
            raise SpanwiseError(f"{out}: is not empty and no run folder; choose another folder")
        if not resume:
            raise SpanwiseError(f"{out}: {_UNFINISHED}")
    for path in leftovers:
        shutil.rmtree(path, ignore_errors=True)


def is_begun(out: Path) -> bool:
    """Whether a training has written to a folder."""
    return (out / CONFIG).is_file() or (out / BEGAN).is_file()


def runs_begun(out: Path) -> set[str]:
    """The names of the runs in a folder to which a training has written."""
    return {folder.name for folder in out.iterdir() if is_begun(folder)} if out.is_dir() else set()


def check_several(out: Path, kind: str, resume: bool) -> None:
    """Refuse a folder for several runs (``kind`` is one of SEVERAL) that holds a single one, or those of another kind."""
    _check_no_run(out, resume)
    if is_begun(out):
        raise SpanwiseError(f"{out}: holds an unfinished training of a single run; choose another folder")
    if (out / f"{kind}.json").is_file() and not resume:
        raise SpanwiseError(
            f"{out}: holds a finished training ({kind}.json is there); --resume adds to it, or choose another folder"
        )
    for other, name in SEVERAL.items():
        if other == kind:
            continue
        found = [run.name for run in runs_in(out) if re.fullmatch(name, run.name)]
        if (out / f"{other}.json").is_file() or found:
            what = found[0] if found else f"{other}.json"
            raise SpanwiseError(f"{out}: holds the training of --{other} ({what} is there); choose another folder")
    if runs_begun(out) and not resume:
        raise SpanwiseError(f"{out}: {_UNFINISHED}")


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
    with atomic_output(path) as temporary:
        temporary.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
