"""Find likely annotation errors in a corpus and write them to a folder (``spanwise audit``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import Any

from spanwise.audit.cross_validation import cross_validate
from spanwise.audit.evidence import Evidence
from spanwise.audit.folder import AuditFolder, AuditRecord, check_same_audit
from spanwise.audit.outputs import correction_format, write_outputs
from spanwise.audit.ranking import RankedCandidate, rank_candidates
from spanwise.audit.result import Audit
from spanwise.audit.suggestions import Suggestion, audited_part, sentence_keys
from spanwise.audit.view import AuditView
from spanwise.config.settings import Config
from spanwise.config.validation import validate_settings
from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence
from spanwise.core.version import __version__
from spanwise.corpora.splits import fingerprint
from spanwise.recipes.resolve import Choices
from spanwise.training.building import replace_encoder
from spanwise.training.data import read_data
from spanwise.training.run import RunOptions

FOLDS, REPEATS = 5, 1
MIN_EPOCHS = 5
MIN_ENTITIES = 20  # fewer cannot teach a model what an entity is
MIN_ACCEPTED = 0.5  # share of gold entities that models accept; below, their rejections say little


def audit(
    data: str | Path | Corpus,
    out: str | Path,
    *,
    split: str | None = None,
    folds: int | None = None,
    repeats: int | None = None,
    recipe: str | None = None,
    encoder: str | None = None,
    overrides: Iterable[str] = (),
    limit: int | None = None,
    to: str | None = None,
    device: str = "auto",
    resume: bool = False,
    data_format: str | None = None,
    log: Callable[[str], None] = print,
    **settings: Any,
) -> Audit:
    """Cross-validate models on a corpus and write their disagreements with gold to the folder ``out``.

    Args:
        data: a corpus, a folder with train, dev and test files, or one file.
        out: a new or empty folder, or with ``resume`` the folder of an audit.
        split: the split to audit; all of them together by default.
        folds: number of models per repetition, 5 by default; each scores the part of the data that it was not
            trained on.
        repeats: repetitions of the cross-validation with other folds and seeds, whose scores are averaged; 1 by
            default.
        recipe: system to train; ``spanwise`` by default.
        encoder: encoder of the models, as in ``train``.
        overrides: settings as ``section.key=value``.
        limit: number of suggestions to write; all by default.
        to: format of a file with the sentences to correct, such as ``label_studio`` or ``brat``.
        device: ``cpu``, ``cuda`` or ``auto``.
        resume: continue an interrupted audit, or write the files of a finished one again.
        data_format: format of the data; detected by default.
        log: receives each line of progress.
        settings: training settings, such as ``epochs`` and ``seed``, as in ``train``. By default, models are
            trained for half as many epochs: an audit needs clear cases, not the last point of F1, and models
            that train less fit fewer errors.
    """
    if to is not None:
        correction_format(to)  # an unknown format is refused before any work
    folder = AuditFolder(Path(out))
    source = None if isinstance(data, Corpus) else Path(data)
    choices = Choices(recipe, encoder, None, tuple(overrides), settings)
    with folder.open(source, should_resume=resume, log=log):
        # Read the data. A resumed audit has the same settings as before.
        old = folder.read_record()
        if old is not None:
            split, data_format = split or old.split, data_format or old.format
        if folds is None:
            folds = FOLDS if old is None else old.folds
        if repeats is None:
            repeats = REPEATS if old is None else old.repeats
        corpus = audited_part(read_data(data, data_format, log), split, source or "the data")
        keys = sentence_keys(corpus)
        sentences = [replace(sentence, relations=(), links=()) for _, sentence in keys.values()]
        check_size(sentences, folds)
        config = _configure(choices, folder, old, round(0.9 * len(sentences) * (folds - 1) / folds))
        if old is None and choices.takes_default_encoder:
            config = replace_encoder(config, Corpus({"train": tuple(sentences)}), log)

        # Record the settings, or check that they are the same.
        record = AuditRecord(
            spanwise=__version__, data=None if source is None else str(source.absolute()), format=data_format,
            split=split, fingerprint=fingerprint(sentences), folds=folds, repeats=repeats,
            config=config.model_dump(mode="json"), written={} if old is None else old.written,
        )  # fmt: skip
        if old is not None:
            check_same_audit(folder.path, old, record)
        elif reason := choices.encoder_reason:
            log(reason)
        folder.write_record(record)

        # Train, compare with gold, and write.
        options = RunOptions(device=device, test=False, log=log)
        scores = cross_validate(
            sentences, corpus.types, config, folder.scores, folds=folds, repeats=repeats, options=options
        )  # fmt: skip
        view = AuditView(sentences, corpus.types, Evidence(scores, len(sentences)))
        names, note, ranked = list(keys), _weakness(view), rank_candidates(view)
        if note:
            log(f"note: {note}")
            ranked = [item for item in ranked if item.candidate.kind != "spurious"]
        result = Audit(corpus, keys, [_to_suggestion(item, view, names) for item in ranked[:limit]], note=note)
        return replace(result, files=write_outputs(result, folder, to, log))


def _configure(choices: Choices, folder: AuditFolder, old: AuditRecord | None, sentence_count: int) -> Config:
    """The configuration of the models, each trained on ``sentence_count`` sentences."""
    resumed = None if old is None else validate_settings(Config, old.config, f"{folder.record_file}: config")
    config = choices.resolve(resumed=resumed)
    if config.head.get("task") == "typing":
        raise SpanwiseError("an audit needs models that predict entities; --task typing and head.task=typing do not")
    return _with_epochs(config, sentence_count)


def _with_epochs(config: Config, sentence_count: int) -> Config:
    """Set automatic epochs: half as many as a training on this many sentences has."""
    training = config.training
    if training.epochs is not None:
        return config
    epochs = training.resolve(sentence_count).epochs or MIN_EPOCHS
    return config.model_copy(update={"training": training.model_copy(update={"epochs": max(MIN_EPOCHS, epochs // 2)})})


def check_size(sentences: Sequence[Sentence], folds: int) -> None:
    """Refuse data that is too small for a cross-validation."""
    if folds < 2:
        raise SpanwiseError(f"--folds {folds}: expected 2 or more; each model is tested on sentences that it has not seen")
    entities = sum(len(sentence.entities) for sentence in sentences)
    if len(sentences) < 2 * folds or entities < MIN_ENTITIES:
        have = f"{counted(len(sentences), 'sentence')} with {counted(entities, 'entity')}"
        need = f"at least {2 * folds} sentences for {folds} folds, and {MIN_ENTITIES} entities"
        raise SpanwiseError(f"the data is too small to audit: it has {have}; expected {need}")


def _weakness(view: AuditView) -> str:
    """What to do about models that reject most gold entities; empty if they do not."""
    accepted, total = view.accepted_count, view.entity_count
    if accepted >= MIN_ACCEPTED * total:
        return ""
    return (
        f"the models predict only {accepted:,} of {total:,} gold entities, so an entity that they do not predict is probably "
        "right: no spurious entities are suggested, and other suggestions are less reliable. Repeat the audit with more "
        "epochs (--epochs), or another encoder or recipe"
    )


def _to_suggestion(item: RankedCandidate, view: AuditView, names: Sequence[str]) -> Suggestion:
    """Describe a ranked candidate in terms of the data."""
    gold, suggestion = (
        None if key is None else view.entity(key) for key in (item.candidate.gold, item.candidate.suggestion)
    )  # fmt: skip
    return Suggestion(
        names[item.sentence], item.candidate.kind, gold, suggestion, round(1 / (1 + exp(-item.log_odds)), 4), item.details
    )  # fmt: skip
