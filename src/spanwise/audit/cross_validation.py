"""Cross-validation that keeps the scores of finished folds, so that an interrupted audit can be resumed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from spanwise.audit.folds import assign_folds
from spanwise.audit.probes import probe_spans
from spanwise.audit.span_scores import SpanScores, score_spans
from spanwise.config.settings import Config
from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus, Sentence, Span
from spanwise.corpora.splits import ensure_dev_split
from spanwise.files.writing import atomic_output
from spanwise.runs.folder import RunFolder
from spanwise.training.run import RunOptions, train_config


def cross_validate(
    sentences: Sequence[Sentence], types: Sequence[str], config: Config, folder: Path, *, folds: int, repeats: int,
    options: RunOptions,
) -> list[SpanScores]:  # fmt: skip
    """Score every sentence with models that were not trained on it; return the scores of each repetition.

    Each repetition splits the sentences differently and trains with another seed. The scores of a fold
    are written to ``folder`` when it is finished, and its model is removed. A fold whose scores are there
    is not trained again; one that was interrupted resumes from its checkpoint.
    """
    seed = config.training.seed
    probes = probe_spans(sentences, seed)
    return [
        _merge([
            _fold(sentences, types, probes, config, folder, repeat, fold, folds, options)
            for fold in range(folds)
        ])
        for repeat in range(repeats)
    ]  # fmt: skip


def _fold(
    sentences: Sequence[Sentence], types: Sequence[str], probes: Sequence[set[Span]], config: Config, folder: Path,
    repeat: int, fold: int, folds: int, options: RunOptions,
) -> SpanScores:  # fmt: skip
    """The scores of one fold: read, or computed by a new model and written."""
    name = f"fold-{repeat * folds + fold + 1}"
    file, run = folder / f"{name}.npz", RunFolder(folder / name)
    if file.is_file():
        shutil.rmtree(run.path, ignore_errors=True)  # a killed process may have left it
        return _read(file)
    seed = config.training.seed + repeat
    assigned = assign_folds(sentences, folds, seed)
    indices = [index for index, number in enumerate(assigned) if number == fold]
    train = tuple(sentence for sentence, number in zip(sentences, assigned, strict=True) if number != fold)
    corpus, _ = ensure_dev_split(Corpus({"train": train}))
    options.log(f"== {name}: {counted(len(train), 'sentence')} to train, {len(indices):,} to audit")
    config = config.model_copy(update={"training": config.training.model_copy(update={"seed": seed})})
    if run.is_finished:  # interrupted before the scores were written
        shutil.rmtree(run.path)
    model = train_config(corpus, run.path, config, replace(options, resume=run.is_unfinished)).model
    held_out = [sentences[index] for index in indices]
    scores = score_spans(model, types, held_out, [probes[index] for index in indices], sentences)
    scores = scores._replace(sentence=np.array(indices, np.int32)[scores.sentence])
    _write(scores, file)
    shutil.rmtree(run.path)
    return _read(file)  # rounded, as in a resumed audit


def _merge(parts: Sequence[SpanScores]) -> SpanScores:
    """The rows of all folds, sorted by sentence."""
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return SpanScores(*(column[order] for column in columns))


def _write(scores: SpanScores, path: Path) -> None:
    with atomic_output(path) as temporary, temporary.open("wb") as file:
        columns = scores._asdict() | {"log_odds": scores.log_odds.astype(np.float16)}  # half the size, exact enough
        np.savez_compressed(file, **columns)


def _read(path: Path) -> SpanScores:
    try:
        with np.load(path) as columns:
            scores = SpanScores(*(columns[name] for name in SpanScores._fields))
            return scores._replace(log_odds=scores.log_odds.astype(np.float32))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        raise SpanwiseError(f"{path}: damaged; delete it, and resume to train this fold again") from None
