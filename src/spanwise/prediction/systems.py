"""Systems as they are named on a command line: files of predictions, or run folders that are put to work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.corpora.splits import one_split
from spanwise.evaluation.pairing import pair
from spanwise.files.reading import read_json
from spanwise.formats import Ledger
from spanwise.runs.files import CONFIG

SEEDS = "seeds.json"  # what training with several seeds leaves beside the runs


@dataclass(frozen=True)
class NamedSystem:
    """A name and what its runs are read from: a file of predictions or a run folder each."""

    name: str
    paths: tuple[Path, ...]


def named_systems(texts: Iterable[str]) -> list[NamedSystem]:
    """Systems from ``[NAME=]PATH[,PATH…]``: several paths, or the folder of a training with several seeds, are several runs.

    Without a name, a system is called after its first path.
    """
    systems = [_system(text) for text in texts]
    for name in {system.name for system in systems}:
        if sum(system.name == name for system in systems) > 1:
            raise SpanwiseError(f"two systems are called {name!r}; name them, as in NAME=PATH")
    return systems


def gold_sentences(path: Path, format: str | None, ledger: Ledger) -> list[Sentence]:
    """The sentences of a file of gold, of which there must be some: nothing can be scored on none."""
    right = list(one_split(path, format, ledger))
    if not right:
        raise SpanwiseError(f"{path}: has no sentences, so nothing can be scored on it")
    return right


def predictions(path: Path, gold: Sequence[Sentence], format: str | None, ledger: Ledger) -> list[Sentence]:
    """The sentences of a file of predictions. That they are those of gold is looked at here, where the file's name is known."""
    found = list(one_split(path, format, ledger))
    try:
        pair(gold, found)
    except SpanwiseError as error:
        raise SpanwiseError(f"{path}: {error}") from None
    return found


def outputs(
    system: NamedSystem,
    gold: Sequence[Sentence],
    data: Path,
    split: str,
    *,
    format: str | None,
    data_format: str | None,
    ledger: Ledger,
    device: str,
) -> Iterator[list[Sentence]]:
    """What each run of a system has for the gold sentences, those of a split of data: read or predicted."""
    for path in system.paths:
        if not (path / CONFIG).is_file():
            yield predictions(path, gold, format, ledger)
            continue
        from spanwise.prediction.load import load
        from spanwise.prediction.scoring import predict_split

        predictor = load(path, device)
        if predictor.needs_spans:
            raise SpanwiseError(f"{path}: this model types given spans and finds none by itself, so it has no F1 to compare")
        yield predict_split(predictor, data, split=split, format=data_format).predicted


def _system(text: str) -> NamedSystem:
    if Path(text).exists():  # a path may hold any character
        return NamedSystem(_called(Path(text)), tuple(_runs(Path(text))))
    name, equals, rest = text.partition("=")
    paths = [Path(part) for part in (rest if equals else text).split(",") if part]
    if not paths or (equals and not name):
        raise SpanwiseError(f"{text}: expected [NAME=]PATH[,PATH…]")
    for path in paths:
        if not path.exists():
            raise SpanwiseError(f"{path}: no such file or folder")
    return NamedSystem(name if equals else _called(paths[0]), tuple(run for path in paths for run in _runs(path)))


def _called(path: Path) -> str:
    return path.absolute().name if path.is_dir() else path.stem


def _runs(path: Path) -> list[Path]:
    """The runs of a system at a path: of a folder of several seeds those that its summary names, by the number of the seed."""
    if not (path / SEEDS).is_file():
        return [path]
    seeds = read_json(path / SEEDS).get("seeds")
    if not isinstance(seeds, list) or not seeds or not all(isinstance(seed, int) for seed in seeds):
        raise SpanwiseError(f"{path / SEEDS}: cannot be read: expected the list of seeds")
    runs = [path / f"seed-{seed}" for seed in sorted(seeds)]
    for run in runs:
        if not (run / CONFIG).is_file():
            raise SpanwiseError(f"{path}: {SEEDS} names {run.name}, which is not there")
    return runs
