"""Systems named on the command line: prediction files or run folders."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from spanwise.core.errors import SpanwiseError, SpanwiseWarning
from spanwise.core.types import Sentence
from spanwise.corpora.splits import read_single_split
from spanwise.decoding.thresholds import Threshold, Thresholds, apply_threshold, split_threshold
from spanwise.evaluation.pairing import pair
from spanwise.files.reading import read_json
from spanwise.files.writing import is_stream
from spanwise.formats import Ledger
from spanwise.prediction.outputs import types_in
from spanwise.runs.folder import RunFolder
from spanwise.runs.installed import installed_folder, suggest_installed


@dataclass(frozen=True)
class System:
    """A name and its runs, each a prediction file or a run folder."""

    name: str
    paths: tuple[Path, ...]


def parse_systems(texts: Iterable[str]) -> list[System]:
    """Parse systems of the form ``[NAME=]PATH[,PATH…]``.

    Several paths are several runs, and so is a folder written by ``--seeds``. The default
    name is that of the first path.
    """
    systems = [_parse_system(text) for text in texts]
    for name, count in Counter(system.name for system in systems).items():
        if count > 1:
            raise SpanwiseError(f"two systems are named {name!r}; name each of them with NAME=PATH")
    return systems


def read_gold(path: Path, format: str | None, ledger: Ledger) -> list[Sentence]:
    """Read gold sentences; an empty file is an error."""
    gold = list(read_single_split(path, format, ledger))
    if not gold:
        raise SpanwiseError(f"{path}: no sentences; expected gold annotations")
    return gold


def read_predictions(path: Path, gold: Sequence[Sentence], format: str | None, ledger: Ledger) -> list[Sentence]:
    """Read predicted sentences and check that they match gold; errors name the file."""
    predicted = list(read_single_split(path, format, ledger))
    try:
        pair(gold, predicted)
    except SpanwiseError as error:
        raise SpanwiseError(f"{path}: {error}") from None
    return predicted


def check_systems(systems: Iterable[System], format: str | None) -> None:
    """Raise an error for a prediction file that cannot be read; called before a model is loaded."""
    for system in systems:
        for path in system.paths:
            if RunFolder(path).is_group:
                raise SpanwiseError(f"{path}: is a folder of several runs; pass one of them, or several with commas")
            if not RunFolder(path).is_run and not is_stream(path):
                next(read_single_split(path, format), None)  # detects the format


def system_predictions(
    system: System,
    gold: Sequence[Sentence],
    data: Path,
    split: str,
    *,
    format: str | None,
    data_format: str | None,
    ledger: Ledger,
    device: str,
    threshold: Threshold = 0.0,
) -> Iterator[list[Sentence]]:
    """Yield the predictions of each run that reach a threshold: read from a file, or predicted for a split of ``data``.

    Thresholds of types that a model does not know are ignored. Types that a model kept (``--keep-types``)
    are dropped from its predictions for data that does not annotate them.
    """
    for path in system.paths:
        if not RunFolder(path).is_run:
            predicted = read_predictions(path, gold, format, ledger)
            yield list(apply_threshold(predicted, split_threshold(threshold, *types_in(predicted), ignores_unknown=True)))
            continue
        from spanwise.prediction.load import load
        from spanwise.prediction.scoring import predict_split

        predictor = load(path, device)
        if predictor.needs_spans:
            raise SpanwiseError(f"{path}: this model types given spans and predicts no entities, so it has no F1 to compare")
        known = split_threshold(threshold, predictor.types, predictor.relation_types, ignores_unknown=True)
        result = predict_split(predictor, data, split=split, format=data_format, threshold=known)
        if result.held_out is not None:
            warnings.warn(f"{path}: trained on this data, so its scores are too high", SpanwiseWarning, stacklevel=2)
        unreached = Thresholds(entities=dict.fromkeys(result.unannotated_types, inf))  # which drops all entities of these types
        yield list(apply_threshold(result.predicted, unreached))


def _parse_system(text: str) -> System:
    if Path(text).exists():  # a path may hold any character
        return System(_default_name(Path(text)), tuple(seed_runs(Path(text))))
    name, equals, rest = text.partition("=")
    paths = [Path(part) for part in (rest if equals else text).split(",") if part]
    if not paths or (equals and not name):
        raise SpanwiseError(f"{text}: expected [NAME=]PATH[,PATH…]")
    folders = [path if path.exists() else installed_folder(str(path)) for path in paths]
    for path, folder in zip(paths, folders, strict=True):
        if folder is None:
            raise SpanwiseError(f"{path}: no such file or folder{suggest_installed(str(path))}")
    runs = tuple(run for folder in folders if folder is not None for run in seed_runs(folder))
    return System(name if equals else _default_name(paths[0]), runs)


def _default_name(path: Path) -> str:
    return path.absolute().name if path.is_dir() else path.stem


def seed_runs(path: Path) -> list[Path]:
    """Return the path itself, or the runs of a ``--seeds`` folder in order of their seeds."""
    summary = RunFolder(path).summary_file("seeds")
    if not summary.is_file():
        return [path]
    seeds = read_json(summary).get("seeds")
    if not isinstance(seeds, list) or not seeds or not all(isinstance(seed, int) for seed in seeds):
        raise SpanwiseError(f"{summary}: expected a list of seeds")
    runs = [path / f"seed-{seed}" for seed in sorted(seeds)]
    for run in runs:
        if not RunFolder(run).is_run:
            raise SpanwiseError(f"{path}: {summary.name} lists {run.name}, which does not exist")
    return runs
