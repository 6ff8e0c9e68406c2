"""Train a model: data in, a run folder out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spanwise.config.settings import Config
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus
from spanwise.corpora.splits import fingerprints
from spanwise.files.disk import DiskFullError
from spanwise.files.writing import write_json
from spanwise.formats.registry import split_encoding
from spanwise.models.model import Model
from spanwise.recipes.resolve import Choices
from spanwise.runs.folder import RunFolder
from spanwise.runs.opening import open_run_folder
from spanwise.runs.outputs import check_output
from spanwise.runs.records import TrainingRecord, check_same_init, check_same_teachers
from spanwise.runtime.device import is_main_process, should_use_cuda
from spanwise.runtime.tensors import load_weights
from spanwise.training.building import build_model, replace_encoder, report_problems
from spanwise.training.calibrate import calibrate
from spanwise.training.checkpoint import find_checkpoint
from spanwise.training.conditions import current_conditions, describe_changes
from spanwise.training.data import add_unlabelled, read_training_corpus
from spanwise.training.deterministic import deterministic_algorithms
from spanwise.training.distillation import Distillation, find_teachers
from spanwise.training.gaps import fill_gaps, first_round, needs_two_rounds
from spanwise.training.kept_types import keep_types
from spanwise.training.loop import Trainer
from spanwise.training.report import training_report
from spanwise.training.scoring import predict_splits, score_predictions, tune
from spanwise.training.supervision import Supervision
from spanwise.training.teacher_outputs import TeacherOutputs, taught_sentences
from spanwise.training.trackers import check_trackers


@dataclass
class Run:
    """A finished run: its folder, the model with the weights that were best on dev, and the scores by split.

    ``data_format`` is the format in which the data was read, if it was given.
    """

    folder: Path
    model: Model
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    data_format: str | None = None


@dataclass(frozen=True)
class RunOptions:
    """How to train; none of this is a setting of the model. ``train`` explains each option."""

    device: str = "auto"
    resume: bool = False
    init: str | Path | None = None
    keep_types: bool = False
    data_format: str | None = None
    trackers: tuple[str, ...] = ()
    test: bool = True
    log: Callable[[str], None] = print
    teachers: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()
    #: Whether to use the static encoder if the pretrained one hardly knows the language of the data.
    can_replace_encoder: bool = False
    #: How many runs of a group to train at the same time.
    jobs: int = 1


def train(
    data: str | Path | Corpus,
    out: str | Path,
    *,
    recipe: str | None = None,
    encoder: str | None = None,
    task: str | None = None,
    overrides: str | Iterable[str] = (),
    device: str = "auto",
    resume: bool = False,
    init: str | Path | None = None,
    keep_types: bool = False,
    data_format: str | None = None,
    trackers: str | Iterable[str] = (),
    test: bool = True,
    log: Callable[[str], None] = print,
    teachers: str | Path | Iterable[str | Path] = (),
    unlabelled: str | Path | Iterable[str | Path] = (),
    **settings: Any,
) -> Run:
    """Train a model and write it with its settings and scores to the run folder ``out``.

    ``spanwise.train("DATA", "RUN")`` chooses all settings from the data. Use the model with
    ``spanwise.load("RUN")``.

    Args:
        data: a corpus, a folder with train, dev and test files, or one file.
        out: a new or empty folder, or with ``resume`` that of an unfinished run.
        recipe: name of a recipe; ``spanwise`` by default.
        encoder: ``static``, ``minilm``, a model folder, or ``hf:NAME`` on the Hugging Face hub; MiniLM by
            default if it is installed, else ``static``.
        task: ``entities``, or ``typing`` of given spans for heads that support it.
        overrides: settings as ``section.key=value``.
        device: ``cpu``, ``cuda`` or ``auto``.
        resume: continue an unfinished run with its settings; settings passed here must be the same.
        init: run folder of a trained model whose weights to start from.
        keep_types: also predict the types of ``init`` that the data does not annotate; that model teaches them.
        data_format: format of the data; detected by default.
        trackers: also log to ``tensorboard``, ``wandb`` or ``mlflow``.
        test: whether to score the test split after training.
        log: receives each line of progress.
        teachers: trained models whose probabilities to learn, next to gold (see ``distill``).
        unlabelled: with teachers, files of text to learn from as well, in the encoding of the data.
        settings: training settings, such as ``epochs``, ``batch_size`` and ``seed`` (see ``TrainingSettings``). Epochs,
            batch size and patience depend on the number of training sentences by default.
    """
    choices = Choices(recipe, encoder, task, _strings(overrides), settings)
    options = RunOptions(
        device=device, resume=resume, init=init, keep_types=keep_types, data_format=data_format, trackers=_strings(trackers),
        test=test, log=log, teachers=_strings(teachers), unlabelled=_strings(unlabelled),
    )  # fmt: skip
    return train_choices(data, Path(out), choices, options)


def distill(
    teachers: str | Path | Iterable[str | Path], data: str | Path | Corpus, out: str | Path, **options: Any
) -> Run:  # fmt: skip
    """Train a student that learns from trained models, the teachers, and write it to ``out``.

    Use it to turn several models into one of the same size, or a large model into a small one. The
    student may have any recipe and encoder. In the training data it learns from gold and from the mean
    probabilities of the teachers; the setting ``gold_weight`` is the weight of gold. In ``unlabelled``
    text it learns from the probabilities only. ``options`` are those of ``train``.

    ``spanwise.distill(["RUN1", "RUN2"], "DATA", "RUN", unlabelled="more.txt")`` trains one model from two.
    """
    teachers = _strings(teachers)
    if not teachers:
        raise SpanwiseError("distillation needs at least one teacher")
    return train(data, out, teachers=teachers, **options)


def train_choices(data: str | Path | Corpus, out: Path, choices: Choices, options: RunOptions) -> Run:
    """Resolve a user's choices to a configuration and train it."""
    record = RunFolder(out).read_record() if options.resume else None
    config = choices.resolve(resumed=record.config if record else None)
    if record is None and is_main_process() and (reason := choices.encoder_reason):
        options.log(reason)
    can_replace_encoder = record is None and choices.takes_default_encoder
    return train_config(data, out, config, replace(options, can_replace_encoder=can_replace_encoder))


def train_config(data: str | Path | Corpus, out: Path, config: Config, options: RunOptions) -> Run:
    """Train a configuration, from an empty or unfinished run folder to a finished one."""
    folder = RunFolder(out)
    options = _check_options(data, folder, options)
    opened = open_run_folder(out, should_resume=options.resume, log=options.log) if is_main_process() else nullcontext()
    with opened:
        record = folder.read_record() if options.resume else None
        if options.resume and not folder.is_started:
            options.log(f"nothing to resume in {out}: training from the start")
            options = replace(options, resume=False)
        if record is not None:
            options = replace(options, data_format=options.data_format or record.data_format)
        corpus = read_training_corpus(data, options.data_format, options.log)
        if record is not None:
            check_same_teachers(out, record, options.teachers, options.unlabelled)
            options = replace(options, unlabelled=record.unlabelled)
        if options.unlabelled:
            _, encoding = split_encoding(options.data_format)
            corpus = add_unlabelled(corpus, options.unlabelled, options.log, encoding=encoding)
        if record is not None:
            record.check_same(out, config, fingerprints(corpus))
            check_same_init(out, record, options.init, keep_types=options.keep_types)
            options = replace(options, init=record.init, keep_types=record.keep_types)
        try:
            with deterministic_algorithms(is_requested=config.training.deterministic):
                return _train(corpus, folder, config, options, record)
        except DiskFullError as error:
            if not folder.is_unfinished:
                raise
            message = f"{error.path}: not written: {error.problem}; free some space and continue with --resume"
            raise SpanwiseError(message) from None


def _check_options(data: str | Path | Corpus, folder: RunFolder, options: RunOptions) -> RunOptions:
    """Check options before anything is read or written; return them with complete paths of teachers and text."""
    should_use_cuda(options.device)
    check_trackers(options.trackers)
    record = folder.read_record() if options.resume else None
    if options.unlabelled and not options.teachers:
        raise SpanwiseError("unlabelled text needs a teacher; use spanwise distill")
    if options.keep_types and options.init is None and record is None:
        raise SpanwiseError("--keep-types needs --init RUN, the model whose types to keep")
    if options.keep_types and options.teachers:
        raise SpanwiseError("--keep-types cannot be combined with teachers: the model of --init is the teacher")
    if options.teachers:
        teachers = find_teachers(options.teachers, () if record is None else record.teachers)
        unlabelled = tuple(str(Path(path).absolute()) for path in options.unlabelled)
        options = replace(options, teachers=tuple(map(str, teachers)), unlabelled=unlabelled)
    inputs = (data, options.init, *options.teachers, *options.unlabelled)
    check_output(folder.path, [path for path in inputs if isinstance(path, str | Path)], can_be_run=True)
    return options if is_main_process() else replace(options, log=_discard)


def _train(
    corpus: Corpus, folder: RunFolder, config: Config, options: RunOptions, started_with: TrainingRecord | None
) -> Run:  # fmt: skip
    """Train in an open folder on data that has been read; a resumed run was ``started_with`` a record."""
    checkpoint = find_checkpoint(folder, options.log, should_remove=is_main_process()) if options.resume else None
    if options.resume and checkpoint is None and not first_round(folder).is_started:
        options.log("no checkpoint to resume from: starting from the beginning")
    if options.can_replace_encoder:
        config = replace_encoder(config, corpus, options.log)

    # Build the model for what it learns from: gold, and the outputs of other models.
    record = _make_record(config, corpus, options)
    if checkpoint is None and options.init is not None and options.keep_types:
        # An initial model that does not match is refused now, because the old model takes time to read the data.
        build_model(config, Supervision(corpus), saved=None, init=options.init, log=_discard)
    supervision = _supervise(corpus, folder, record, options)
    saved = None if checkpoint is None else folder.path
    model = build_model(config, supervision, saved=saved, init=options.init, log=options.log)
    notes = report_problems(model, supervision, options.log)

    # Train. From here on the run can be resumed, because its record is written.
    trainer = Trainer(
        model, supervision.corpus, folder.path, device=options.device, trackers=options.trackers, log=options.log,
        sentences=supervision.sentences(model), data=record.data,
    )  # fmt: skip
    options.log(trainer.plan)
    conditions = current_conditions(trainer.device_name, trainer.accelerator.num_processes)
    if checkpoint is None and is_main_process():
        replace(record, conditions=conditions).write(folder.record_file)
        if supervision.teacher_outputs is not None:
            supervision.teacher_outputs.write(folder.teacher_outputs_file)
    elif started_with is not None and (change := describe_changes(started_with.conditions, conditions)):
        options.log(f"note: {change}")
        notes.append(change)
    started = time.perf_counter()
    trainer.train(checkpoint)

    # Tune and score the best weights.
    load_weights(model, folder.weights_file)
    tune(model, supervision.corpus, folder.path)
    predicted = predict_splits(model, supervision.corpus, ("dev", "test") if options.test else ("dev",))
    scores = score_predictions(model, supervision.corpus, predicted)
    calibration = calibrate(model, supervision.corpus, predicted, folder, options.log)

    # Write the report, which marks the run as finished.
    if is_main_process():
        report = training_report(trainer, config, scores, notes, conditions, time.perf_counter() - started)
        write_json(folder.report_file, report | supervision.to_report() | {"calibration": calibration})
    trainer.finish(scores)
    return Run(folder.path, model.eval(), scores, options.data_format)


def _make_record(config: Config, corpus: Corpus, options: RunOptions) -> TrainingRecord:
    """The record that a resumed run needs; conditions are added when the device is known."""
    init = None if options.init is None else str(Path(options.init).absolute())
    return TrainingRecord(
        config, fingerprints(corpus), init, teachers=options.teachers, unlabelled=options.unlabelled,
        keep_types=options.keep_types, data_format=options.data_format,
    )  # fmt: skip


def _supervise(corpus: Corpus, folder: RunFolder, record: TrainingRecord, options: RunOptions) -> Supervision:
    """Add the outputs of other models to gold, if options or data require it."""
    if options.teachers:
        stored = TeacherOutputs.read(folder.teacher_outputs_file, len(taught_sentences(corpus)))
        return Distillation(corpus, options.teachers, options.unlabelled, stored, device=options.device, log=options.log)
    if options.keep_types:
        return keep_types(Path(str(options.init)), corpus, folder, device=options.device, log=options.log)
    if not needs_two_rounds(record.config, corpus["train"]):
        return Supervision(corpus)

    def train_first(first: RunFolder, config: Config) -> Model:
        once = replace(options, resume=first.is_unfinished, test=False, trackers=(), can_replace_encoder=False)
        return _train(corpus, first, config, once, first.read_record()).model

    return fill_gaps(corpus, folder, record, train_first, device=options.device, log=options.log)


def _strings(values: str | Path | Iterable[str | Path]) -> tuple[str, ...]:
    """Several values as strings; a single string or path is one value."""
    return (str(values),) if isinstance(values, str | Path) else tuple(map(str, values))


def _discard(line: str) -> None:
    """The log of all processes but the first."""
