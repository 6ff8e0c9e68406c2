"""One call that trains: data in, a run folder out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from spanwise.config.settings import Config
from spanwise.core.errors import SpanwiseError, unknown_name
from spanwise.core.types import Corpus
from spanwise.corpora.splits import fingerprints, read_corpus, with_dev
from spanwise.encoders import encoder_settings
from spanwise.evaluation.tasks import TASKS
from spanwise.formats import Ledger
from spanwise.heads import head_class, head_settings, head_values, known_heads
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.recipes.catalog import DEFAULT_RECIPE, configure
from spanwise.runs.files import REPORT, WEIGHTS
from spanwise.runtime.device import is_main_process, wants_cuda
from spanwise.runtime.tensors import fill
from spanwise.training.checkpoint import Began, check_same_start, read_state
from spanwise.training.checks import before_training
from spanwise.training.folder import is_begun, ready_folder, report, write_json
from spanwise.training.loop import Trainer
from spanwise.training.start import start_from
from spanwise.training.trackers import check_trackers


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
    recipe: str | None = None,
    encoder: str | None = None,
    task: str | None = None,
    overrides: Iterable[str] = (),
    device: str = "auto",
    resume: bool = False,
    init: str | Path | None = None,
    data_format: str | None = None,
    trackers: Iterable[str] = (),
    test: bool = True,
    log: Callable[[str], None] = print,
    **settings: Any,
) -> Run:
    """Train a recipe on data and leave everything in the folder ``out``.

    ``recipe`` is "spanner" if not given. ``task`` is "entities" or, for heads that can, "typing" of given spans.
    ``settings`` are those of ``TrainingSettings`` (``epochs=…``, ``batch_size=…``, ``seed=…``); ``overrides`` are
    ``section.key=value``. ``init`` names a run folder to start from. With ``resume`` an interrupted training goes on
    with the settings it began with; those given must be the same. ``test=False`` leaves the test split alone.
    """
    began = Began.read(Path(out)) if resume else None
    begun = None if began is None else began.config
    config = resolve_config(recipe, encoder=encoder, task=task, settings=settings, overrides=overrides, begun=begun)
    return train_as(
        config, data, Path(out), device=device, resume=resume, init=init, data_format=data_format, trackers=trackers, test=test,
        log=log,
    )  # fmt: skip


def train_as(
    config: Config, data: str | Path | Corpus, out: Path, *, device: str = "auto", resume: bool = False,
    init: str | Path | None = None, data_format: str | None = None, trackers: Iterable[str] = (), test: bool = True,
    log: Callable[[str], None] = print,
) -> Run:  # fmt: skip
    """Train what a configuration says, as ``train`` does."""
    wants_cuda(device)
    trackers = check_trackers(trackers)
    began = Began.read(out) if resume else None
    with ready_folder(out, resume) if is_main_process() else nullcontext():
        if not is_main_process():
            log = _silent
        if resume and not is_begun(out):
            log(f"nothing to resume in {out}: training from the start")
            resume = False
        corpus = open_corpus(data, data_format, log)
        if began is not None:
            began.check(out, config, fingerprints(corpus))
            check_same_start(out, began.init, init)
            init = began.init
        return _train(corpus, out, config, device=device, resume=resume, init=init, trackers=trackers, test=test, log=log)


def _train(
    corpus: Corpus, out: Path, config: Config, *, device: str, resume: bool, init: str | Path | None,
    trackers: Iterable[str], test: bool, log: Callable[[str], None],
) -> Run:  # fmt: skip
    """From a folder and a corpus that are ready to a finished run."""
    torch.manual_seed(config.training.seed)
    goes_on = resume and read_state(out) is not None
    model = Model.build(config, corpus, saved=out if goes_on else None, log=log)
    if init is not None and not goes_on:
        log(start_from(model, Path(init)))
    notes = before_training(corpus, model.head)
    for note in notes:
        log(f"note: {note}")
    trainer = Trainer(model, corpus, out, device=device, trackers=trackers, log=log)
    log(trainer.plan)
    if is_main_process() and not goes_on:
        Began(config, trainer.identity["data"], None if init is None else str(Path(init).absolute())).write(out)
    clock = time.perf_counter()
    trainer.train(resume=resume)
    fill(model, out / WEIGHTS)
    tune(model, corpus, out)
    run = Run(out, model.eval(), final_scores(model, corpus, ("dev", "test") if test else ("dev",)))
    if is_main_process():
        write_json(out / REPORT, report(trainer, config, run.scores, notes, time.perf_counter() - clock))
    trainer.finish(run.scores)
    return run


def resolve_config(
    recipe: str | None, *, task: str | None = None, overrides: Iterable[str] = (), begun: Config | None = None, **choices: Any
) -> Config:
    """The configuration of a run, with the settings of encoder and head checked before anything is read or built.

    What is not given is as a training has ``begun``, where one of this recipe is to go on.
    """
    begun = begun if begun is not None and recipe in (None, begun.recipe) else None
    recipe = recipe or DEFAULT_RECIPE
    if task is not None:
        overrides = (*overrides, *_task_setting(configure(recipe, overrides=overrides, begun=begun), task))
    config = configure(recipe, overrides=overrides, begun=begun, **choices)
    encoder_settings(config.encoder)
    head_settings(config.head)
    return config


def _task_setting(config: Config, task: str) -> list[str]:
    """What makes the configuration's head one for a task; nothing where that is all that it can do."""
    kind = str(config.head.get("kind"))
    tasks = head_class(kind).tasks
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    if task not in tasks:
        able = ", ".join(other for other in known_heads() if task in head_class(other).tasks)
        raise SpanwiseError(f"--task {task}: the head {kind} cannot do that; of the heads, {able} can")
    return [f"head.task={task}"] if len(tasks) > 1 else []


def open_corpus(data: str | Path | Corpus, data_format: str | None, log: Callable[[str], None]) -> Corpus:
    """The data with a dev split; what was mended, left out or cut off is said."""
    corpus, cut = with_dev(read_aloud(data, data_format, log))
    if cut:
        log(cut)
    if not corpus["train"]:
        raise SpanwiseError("the training data has no sentences")
    return corpus


def read_aloud(data: str | Path | Corpus, data_format: str | None, log: Callable[[str], None]) -> Corpus:
    """The data; what was mended or left out while reading is said."""
    ledger = Ledger()
    corpus = data if isinstance(data, Corpus) else read_corpus(data, data_format, ledger)
    for what, count in ledger.notes.items():
        log(f"note: {count:,} {what}")
    if ledger.lost:
        log(f"left out while reading: {ledger}")
    return corpus


def tune(model: Model, corpus: Corpus, out: Path) -> None:
    """Let dev settle what the head has left open; the run folder's configuration then says it."""
    everything = [sentence for split in corpus.splits.values() for sentence in split]
    if model.head.tune(corpus["dev"], lambda: predict(model, corpus["dev"], context=everything)):
        model.config = model.config.model_copy(update={"head": head_values(model.head)})
        if is_main_process():
            model.save(out)


def final_scores(model: Model, corpus: Corpus, splits: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Scores of the splits that there are, in the shape of ``evaluate --json``."""
    everything = [sentence for split in corpus.splits.values() for sentence in split]
    scores = {}
    for split in splits:
        if split in corpus:
            predicted = list(predict(model, corpus[split], context=everything))
            scores[split] = model.task.scores(corpus[split], predicted, corpus["train"])
    return scores


def _silent(line: str) -> None:
    """For processes whose words would be heard twice."""
