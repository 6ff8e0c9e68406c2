"""One call that trains: data in, a run folder out."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from spanwise import __version__
from spanwise.config import Config, configure
from spanwise.corpora import read_corpus, with_dev
from spanwise.errors import SpanwiseError
from spanwise.evaluation import evaluate
from spanwise.formats import Ledger
from spanwise.formats.files import replacing
from spanwise.inference.predictor import predict
from spanwise.model import WEIGHTS, Model, fill
from spanwise.training.checkpoint import FOLDER as CHECKPOINTS
from spanwise.training.checks import before_training
from spanwise.training.loop import Trainer
from spanwise.types import Corpus, Sentence


@dataclass
class Run:
    """A finished training: its folder, its model with the weights that were best on dev, and the scores."""

    folder: Path
    model: Model
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)


def train(
    data: str | Path | Corpus,
    out: str | Path,
    *,
    recipe: str = "spanner",
    encoder: str | None = None,
    overrides: Iterable[str] = (),
    device: str = "auto",
    resume: bool = False,
    init: str | Path | None = None,
    data_format: str | None = None,
    trackers: Iterable[str] = (),
    say: Callable[[str], None] = print,
    **settings: Any,
) -> Run:
    """Train a recipe on data and leave everything in the folder ``out``.

    ``settings`` are those of ``TrainingSettings`` (``epochs=…``, ``batch_size=…``, ``seed=…``); ``overrides`` are
    ``section.key=value``. ``init`` names a run folder to start from. With ``resume`` an interrupted training goes on.
    """
    out = Path(out)
    config = configure(recipe, encoder=encoder, settings=settings, overrides=overrides)
    ready_folder(out, resume)
    ledger = Ledger()
    corpus = data if isinstance(data, Corpus) else read_corpus(data, data_format, ledger)
    for what, count in ledger.notes.items():
        say(f"note: {count:,} {what}")
    if ledger.lost:
        say(f"left out while reading: {ledger}")
    corpus, cut = with_dev(corpus)
    if cut:
        say(cut)
    if not corpus["train"]:
        raise SpanwiseError("the training data has no sentences")
    torch.manual_seed(config.training.seed)
    model = Model.build(config, corpus)
    if init is not None:
        say(start_from(model, Path(init)))
    notes = before_training(corpus, model.head)
    for note in notes:
        say(f"note: {note}")
    trainer = Trainer(model, corpus, out, device=device, trackers=trackers, say=say)
    say(trainer.plan)
    began = time.perf_counter()
    trainer.train(resume=resume)
    fill(model, out / WEIGHTS)
    run = Run(out, model.eval())
    run.scores = final_scores(model, corpus)
    seconds = time.perf_counter() - began
    write_json(out / "run.json", report(run, model.config, corpus, trainer, notes, seconds))
    trainer.finish(run.scores)
    return run


def ready_folder(out: Path, resume: bool) -> None:
    """A folder that may be written to: new, empty, or one whose training is to go on."""
    if out.is_file():
        raise SpanwiseError(f"{out}: is a file, a run folder was expected")
    if (out / "run.json").is_file() and resume:
        raise SpanwiseError(f"{out}: this training is finished (run.json is there), nothing to resume")
    if out.is_dir() and any(out.iterdir()) and not resume:
        started = (out / CHECKPOINTS).is_dir()
        hint = "--resume goes on with it, or" if started else "it holds something else:"
        raise SpanwiseError(f"{out}: is not empty; {hint} choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    for leftover in out.glob(".*"):  # of a write that was killed
        shutil.rmtree(leftover, ignore_errors=True)


def start_from(model: Model, folder: Path) -> str:
    """Take over the weights of a trained model that fit by name and shape."""
    other = Model.load(folder).state_dict()
    own = model.state_dict()
    taken = {name: value for name, value in other.items() if name in own and own[name].shape == value.shape}
    if not any(name.startswith("encoder.") for name in taken):
        raise SpanwiseError(f"{folder}: its encoder does not fit this configuration's; name the same --encoder")
    model.load_state_dict({**own, **taken})
    return f"started from {folder}: {len(taken)} of {len(own)} weight tensors taken over"


def final_scores(model: Model, corpus: Corpus) -> dict[str, dict[str, Any]]:
    """Scores of dev and test, in the shape of ``evaluate --json``."""
    everything = [sentence for split in corpus.splits.values() for sentence in split]
    scores = {}
    for split in ("dev", "test"):
        if split in corpus:
            predicted = list(predict(model, corpus[split], context=everything))
            scores[split] = evaluate(corpus[split], predicted, train=corpus["train"]).to_json()
    return scores


def report(run: Run, config: Config, corpus: Corpus, trainer: Trainer, notes: list[str], seconds: float) -> dict[str, Any]:
    return {
        "scores": run.scores,
        "recipe": config.recipe,
        "encoder": config.encoder,
        "seed": config.training.seed,
        "best_epoch": trainer.best_epoch,
        "epochs": trainer.epoch,
        "parameters": {
            "encoder": sum(p.numel() for p in run.model.encoder.parameters()),
            "head": sum(p.numel() for p in run.model.head.parameters()),
        },
        "data": {split: {"sentences": len(corpus[split]), "fingerprint": fingerprint(corpus[split])} for split in corpus},
        "seconds": {"total": round(seconds, 3), "training": round(trainer.seconds, 3)},
        "device": trainer.device_name,
        "precision": trainer.precision,
        "notes": notes,
        "versions": {"spanwise": __version__, "python": platform.python_version(), **_versions()},
    }


def fingerprint(sentences: Iterable[Sentence]) -> str:
    """A digest of words and entities, to tell whether two runs saw the same data."""
    digest = hashlib.sha256()
    for sentence in sentences:
        entities = sorted((entity.type, entity.fragments) for entity in sentence.entities)
        digest.update(json.dumps([sentence.words, entities], ensure_ascii=False).encode())
    return digest.hexdigest()[:16]


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
