"""Train a model: data in, a run folder out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from spanwise.config.settings import Config
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.corpora.splits import fingerprints
from spanwise.files.disk import DiskFullError
from spanwise.files.writing import write_json
from spanwise.heads import head_class, head_values
from spanwise.heads.abilities import Tunable, find_ability
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.recipes.catalog import encoder_name, encoder_values
from spanwise.recipes.resolve import Choices
from spanwise.runs.folder import RunFolder
from spanwise.runs.opening import open_run_folder
from spanwise.runs.outputs import check_output
from spanwise.runs.records import TrainingRecord, check_same_init, check_same_teachers
from spanwise.runtime.device import is_main_process, should_use_cuda
from spanwise.runtime.tensors import load_weights
from spanwise.training.calibrate import calibrate
from spanwise.training.checkpoint import find_checkpoint
from spanwise.training.checks import check_corpus, check_coverage
from spanwise.training.conditions import current_conditions, describe_changes
from spanwise.training.data import all_sentences, read_training_corpus
from spanwise.training.gaps import fill_gaps, needs_two_rounds
from spanwise.training.init_weights import initialize_from
from spanwise.training.kept_types import keep_types
from spanwise.training.loop import Trainer
from spanwise.training.partial_checks import check_partial
from spanwise.training.report import training_report
from spanwise.training.teacher_outputs import (
    TeacherOutputs,
    add_unlabelled,
    check_student,
    find_teachers,
    labelled,
    taught_sentences,
    with_all_words,
)
from spanwise.training.trackers import check_trackers


@dataclass
class Run:
    """A finished run: its folder, the model with the weights that were best on dev, and the scores by split."""

    folder: Path
    model: Model
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)


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
    keep_types: bool = False,
    data_format: str | None = None,
    trackers: Iterable[str] = (),
    test: bool = True,
    log: Callable[[str], None] = print,
    teachers: Iterable[str | Path] = (),
    unlabelled: Iterable[str | Path] = (),
    **settings: Any,
) -> Run:
    """Train a recipe on data and write everything to the run folder ``out``.

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
        unlabelled: with teachers, files of text to learn from as well.
        settings: training settings, such as ``epochs``, ``batch_size`` and ``seed`` (see ``TrainingSettings``). Epochs,
            batch size and patience follow from the number of training sentences by default.
    """
    choices = Choices(recipe, encoder, task, tuple(overrides), settings)
    options = RunOptions(
        device=device, resume=resume, init=init, keep_types=keep_types, data_format=data_format, trackers=tuple(trackers),
        test=test, log=log, teachers=tuple(map(str, teachers)), unlabelled=tuple(map(str, unlabelled)),
    )  # fmt: skip
    return train_choices(data, Path(out), choices, options)


def distill(teachers: Iterable[str | Path], data: str | Path | Corpus, out: str | Path, **options: Any) -> Run:
    """Train a student with the probabilities of trained models, the teachers, and write it to ``out``.

    Use it to turn several models into one of the same size, or a large model into a small one. The
    student may have any recipe and encoder. It learns from the training data, where the setting
    ``gold_weight`` weighs gold against the mean probabilities of the teachers, and from ``unlabelled``
    text, where it learns the probabilities only. ``options`` are those of ``train``.
    """
    teachers = tuple(teachers)
    if not teachers:
        raise SpanwiseError("distillation needs at least one teacher")
    return train(data, out, teachers=teachers, **options)


def train_choices(data: str | Path | Corpus, out: Path, choices: Choices, options: RunOptions) -> Run:
    """Resolve a user's choices to a configuration and train it."""
    record = RunFolder(out).read_record() if options.resume else None
    config = choices.resolve(resumed=record.config if record else None)
    if record is None and is_main_process() and (reason := choices.encoder_reason):
        options.log(reason)
    is_default = record is None and choices.recipe is None and not choices.names_encoder
    return train_config(data, out, config, replace(options, can_replace_encoder=is_default))


def train_config(data: str | Path | Corpus, out: Path, config: Config, options: RunOptions) -> Run:
    """Train a configuration, from an empty or unfinished run folder to a finished one."""
    # Check the options before anything is read or written.
    should_use_cuda(options.device)
    check_trackers(options.trackers)
    if options.unlabelled and not options.teachers:
        raise SpanwiseError("unlabelled text needs a teacher; use spanwise distill")
    if options.keep_types and options.init is None and not options.resume:
        raise SpanwiseError("--keep-types needs --init RUN, the model whose types to keep")
    if options.keep_types and options.teachers:
        raise SpanwiseError("--keep-types cannot be combined with teachers: the model of --init is the teacher")
    if options.teachers:
        record = RunFolder(out).read_record() if options.resume else None
        recorded = () if record is None else record.teachers
        options = replace(
            options,
            teachers=tuple(map(str, find_teachers(options.teachers, recorded))),
            unlabelled=tuple(str(Path(path).absolute()) for path in options.unlabelled),
        )
    inputs = (data, options.init, *options.teachers, *options.unlabelled)
    check_output(out, [path for path in inputs if isinstance(path, str | Path)], can_be_run=True)
    if not is_main_process():
        options = replace(options, log=_discard)

    folder = RunFolder(out)
    opened = open_run_folder(out, should_resume=options.resume, log=options.log) if is_main_process() else nullcontext()
    with opened:
        record = folder.read_record() if options.resume else None
        if options.resume and not folder.is_started:
            options.log(f"nothing to resume in {out}: training from the start")
            options = replace(options, resume=False)
        corpus = read_training_corpus(data, options.data_format, options.log)
        if record is not None:
            check_same_teachers(out, record, options.teachers, options.unlabelled)
            options = replace(options, unlabelled=record.unlabelled)
        if options.unlabelled:
            corpus = add_unlabelled(corpus, options.unlabelled, options.log)
        if record is not None:
            record.check_same(out, config, fingerprints(corpus))
            check_same_init(out, record.init, options.init)
            options = replace(options, init=record.init, keep_types=record.keep_types)
        try:
            return _train(corpus, folder, config, options, record)
        except DiskFullError as error:
            if not folder.is_unfinished:
                raise
            message = f"{error.path}: not written: {error.problem}; free some space and continue with --resume"
            raise SpanwiseError(message) from None


def _train(corpus: Corpus, folder: RunFolder, config: Config, options: RunOptions, record: TrainingRecord | None) -> Run:
    """Train in an open folder on data that has been read."""
    # Build the model. All random numbers follow from the seed.
    torch.manual_seed(config.training.seed)
    checkpoint = find_checkpoint(folder, options.log, should_remove=is_main_process()) if options.resume else None
    gold_corpus, kept, filled = corpus, None, None
    if not options.teachers and not options.keep_types and needs_two_rounds(config, corpus["train"]):
        once = replace(options, test=False, trackers=())
        filled = fill_gaps(
            corpus, folder, config, once, is_resumed=checkpoint is not None,
            train_first=lambda first, config: _train(
                corpus, first, config, replace(once, resume=first.is_unfinished), first.read_record()
            ).model,
        )  # fmt: skip
        corpus = filled.complete(corpus)
        torch.manual_seed(config.training.seed)
    if options.keep_types:
        kept = keep_types(
            Path(str(options.init)), corpus, folder, options.device, options.log, is_resumed=checkpoint is not None
        )
        corpus = corpus if kept is None else kept.complete(corpus)
    more_types = () if kept is None else kept.types
    build = partial(Model.build, corpus=with_all_words(corpus), more_types=more_types, log=options.log)
    model = build(config, saved=folder.path if checkpoint else None)
    if options.can_replace_encoder and checkpoint is None and check_coverage(corpus, model.encoder):
        name = encoder_name(config.encoder).partition(" + ")[0]
        options.log(f"encoder: static, because {name} hardly knows the script or language of this data")
        config = config.model_copy(update={"encoder": encoder_values("static", config.encoder)})
        torch.manual_seed(config.training.seed)
        model = build(config)
    if options.init is not None and checkpoint is None:
        options.log(initialize_from(model, Path(options.init)))

    if model.head.finds_relations and not head_class(str(config.head["kind"])).finds_relations:
        options.log("the training data has relations: learning them too (--set head.relations=false: entities only)")

    # Report problems in the data.
    notes = [*check_corpus(labelled(corpus), model.head), *check_coverage(corpus, model.encoder)]
    notes += check_partial(corpus["train"], model.head)
    count = len(taught_sentences(corpus))
    teacher_outputs = TeacherOutputs.read(folder.teacher_outputs_file, count) if options.teachers and checkpoint else None
    if options.teachers and teacher_outputs is None:
        notes += check_student(model, options.teachers, has_unlabelled=bool(options.unlabelled))
    for note in notes:
        options.log(f"note: {note}")

    # Ask the teachers, if there are any.
    if options.teachers and teacher_outputs is None:
        teacher_outputs = TeacherOutputs.ask(options.teachers, model, corpus, options.device, options.log)
    taught = None if teacher_outputs is None else teacher_outputs.sentences(corpus, model)
    if filled is not None:
        teacher_outputs = filled.teacher_outputs
    if kept is not None:
        teacher_outputs, taught = kept.teacher_outputs, kept.sentences(gold_corpus, corpus, model)

    # Train. From here on the run can be resumed, because its record is written.
    trainer = Trainer(
        model, corpus, folder.path, device=options.device, trackers=options.trackers, log=options.log, sentences=taught,
        data=gold_corpus,
    )  # fmt: skip
    options.log(trainer.plan)
    conditions = current_conditions(trainer.device_name, trainer.accelerator.num_processes)
    if is_main_process() and checkpoint is None:
        init = None if options.init is None else str(Path(options.init).absolute())
        record = TrainingRecord(
            config, trainer.fingerprints, init, conditions, options.teachers, options.unlabelled, options.keep_types
        )
        record.write(folder.record_file)
        if teacher_outputs is not None:
            teacher_outputs.write(folder.teacher_outputs_file)
    elif record is not None and (change := describe_changes(record.conditions, conditions)):
        options.log(f"note: {change}")
        notes.append(change)
    started = time.perf_counter()
    if options.resume and checkpoint is None:
        options.log("no checkpoint to resume from: starting from the beginning")
    trainer.train(checkpoint)

    # Tune and score the best weights.
    load_weights(model, folder.weights_file)
    tune(model, corpus, folder.path)
    predicted = predict_splits(model, corpus, ("dev", "test") if options.test else ("dev",))
    scores = score_predictions(model, corpus, predicted)
    calibration = calibrate(model, corpus, predicted, folder, options.log)

    # Write the report, which marks the run as finished.
    if is_main_process():
        report = training_report(trainer, config, scores, notes, conditions, time.perf_counter() - started)
        if filled is not None:
            report["gaps"] = filled.to_report(gold_corpus)
        elif kept is not None:
            report["kept_types"] = {"types": list(kept.types), "teachers": list(kept.teacher_outputs.teachers)}
        elif teacher_outputs is not None:
            report["distillation"] = teacher_outputs.to_report(options.unlabelled)
        write_json(folder.report_file, report | {"calibration": calibration})
    trainer.finish(scores)
    return Run(folder.path, model.eval(), scores)


def tune(model: Model, corpus: Corpus, out: Path) -> None:
    """Choose automatic settings of the head on dev and save the model with them."""
    head = find_ability(model.head, Tunable)
    if head is not None and head.tune(corpus["dev"], lambda: predict(model, corpus["dev"], context=all_sentences(corpus))):
        model.config = model.config.model_copy(update={"head": head_values(model.head)})
        if is_main_process():
            model.save(out)


def score_splits(model: Model, corpus: Corpus, splits: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Predict and score the splits that exist, in the format of ``evaluate --json``."""
    return score_predictions(model, corpus, predict_splits(model, corpus, splits))


def predict_splits(model: Model, corpus: Corpus, splits: Iterable[str]) -> dict[str, list[Sentence]]:
    """Predict the splits that exist; scores are those of the head."""
    context = all_sentences(corpus)
    return {split: list(predict(model, corpus[split], context=context)) for split in splits if split in corpus}


def score_predictions(model: Model, corpus: Corpus, predicted: Mapping[str, list[Sentence]]) -> dict[str, dict[str, Any]]:
    return {split: model.task.score_split(corpus[split], rows, corpus["train"]) for split, rows in predicted.items()}


def _discard(line: str) -> None:
    """The log of all processes but the first."""
