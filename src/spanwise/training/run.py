"""One call that trains: data in, a run folder out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from spanwise.config import Config, configure
from spanwise.corpora import read_corpus, with_dev
from spanwise.device import is_main_process, wants_cuda
from spanwise.encoders import encoder_settings
from spanwise.encoders.transfer import take_over
from spanwise.errors import SpanwiseError
from spanwise.evaluation import evaluate
from spanwise.formats import Ledger
from spanwise.inference.predictor import predict
from spanwise.model import WEIGHTS, Model, head_settings
from spanwise.tensors import fill
from spanwise.training.checkpoint import read_state
from spanwise.training.checks import before_training
from spanwise.training.folder import REPORT, ready_folder, report, write_json
from spanwise.training.loop import Trainer
from spanwise.training.trackers import check_trackers
from spanwise.types import Corpus


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
    test: bool = True,
    say: Callable[[str], None] = print,
    **settings: Any,
) -> Run:
    """Train a recipe on data and leave everything in the folder ``out``.

    ``settings`` are those of ``TrainingSettings`` (``epochs=…``, ``batch_size=…``, ``seed=…``); ``overrides`` are
    ``section.key=value``. ``init`` names a run folder to start from. With ``resume`` an interrupted training goes on.
    ``test=False`` leaves the test split alone.
    """
    out = Path(out)
    wants_cuda(device)
    trackers = check_trackers(trackers)
    config = settled(recipe, encoder=encoder, settings=settings, overrides=overrides)
    if is_main_process():
        ready_folder(out, resume)
    else:
        say = _silent
    corpus = open_corpus(data, data_format, say)
    torch.manual_seed(config.training.seed)
    model = Model.build(config, corpus)
    if init is not None and not (resume and read_state(out)):
        say(start_from(model, Path(init)))
    notes = before_training(corpus, model.head)
    for note in notes:
        say(f"note: {note}")
    trainer = Trainer(model, corpus, out, device=device, trackers=trackers, say=say)
    say(trainer.plan)
    began = time.perf_counter()
    trainer.train(resume=resume)
    fill(model, out / WEIGHTS)
    run = Run(out, model.eval(), final_scores(model, corpus, ("dev", "test") if test else ("dev",)))
    if is_main_process():
        write_json(out / REPORT, report(trainer, run.scores, notes, time.perf_counter() - began))
    trainer.finish(run.scores)
    return run


def settled(recipe: str, **choices: Any) -> Config:
    """The configuration of a run, with the settings of encoder and head checked before anything is read or built."""
    config = configure(recipe, **choices)
    encoder_settings(config.encoder)
    head_settings(config.head)
    return config


def open_corpus(data: str | Path | Corpus, data_format: str | None, say: Callable[[str], None]) -> Corpus:
    """The data with a dev split; what was mended, left out or cut off is said."""
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
    return corpus


def start_from(model: Model, folder: Path) -> str:
    """Take over the encoder of a trained model, and of its head what fits, if it has the same labels."""
    other = Model.load(folder)
    take_over(model.encoder, other.encoder, folder)
    if type(model.head) is not type(other.head) or model.labels.entities != other.labels.entities:
        return f"started from {folder}: its encoder was taken over; the head begins anew, for its kind or its labels differ"
    own, found = model.head.state_dict(), other.head.state_dict()
    taken = {name: value for name, value in found.items() if name in own and own[name].shape == value.shape}
    model.head.load_state_dict({**own, **taken})
    return f"started from {folder}: its encoder and {len(taken)} of {len(own)} weight tensors of the head were taken over"


def final_scores(model: Model, corpus: Corpus, splits: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Scores of the splits that there are, in the shape of ``evaluate --json``."""
    everything = [sentence for split in corpus.splits.values() for sentence in split]
    scores = {}
    for split in splits:
        if split in corpus:
            predicted = list(predict(model, corpus[split], context=everything))
            scores[split] = evaluate(corpus[split], predicted, train=corpus["train"]).to_json()
    return scores


def _silent(line: str) -> None:
    """For processes whose words would be heard twice."""
