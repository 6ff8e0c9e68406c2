"""What is to be analysed, from what a user names: a model and data, or files of predictions and gold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spanwise.analysis.analyze import Subject
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.core.version import __version__
from spanwise.corpora.splits import split_of, train_split
from spanwise.decoding.thresholds import apply_threshold
from spanwise.files.names import printable, stem
from spanwise.files.reading import read_json
from spanwise.formats import Ledger
from spanwise.prediction.systems import NamedSystem, gold_sentences, named_systems, outputs, predictions
from spanwise.runs.files import REPORT


@dataclass(frozen=True)
class Reading:
    """How files are read and models run. ``data_format`` is that of gold and train, ``pred_format`` of predictions.

    ``projection`` is how a model's span vectors are drawn.
    """

    split: str = "test"
    data_format: str | None = None
    pred_format: str | None = None
    threshold: float = 0.0
    batch_size: int = 64
    device: str = "auto"
    projection: str = "pca"
    ledger: Ledger = field(default_factory=Ledger)


def of_predictions(pred: Path, gold: Path, *, train: Path | None, against: Sequence[str], reading: Reading) -> Subject:
    """Any system's predictions, against gold."""
    name = stem(pred)
    others = _named(against, name)
    gold_ledger = Ledger()
    right = gold_sentences(gold, reading.data_format, gold_ledger)
    reading.ledger.add(gold_ledger)
    found = list(apply_threshold(predictions(pred, right, reading.pred_format, reading.ledger), reading.threshold))
    known = None if train is None else list(train_split(train, reading.data_format, reading.ledger))
    return Subject(
        name,
        _where(gold, ""),
        right,
        found,
        train=known,
        splits={"train": known, "gold": right} if known is not None else {"gold": right},
        settings=_settings({"predictions": pred, "gold": gold, "train": train}, against, reading),
        against=_outputs(others, right, gold, reading),
        notes=_lost(gold_ledger),
    )


def of_model(run: Path, data: Path, *, train: Path | None, against: Sequence[str], reading: Reading) -> Subject:
    """A trained model, on one split of data."""
    from spanwise.analysis.model_parts import model_parts
    from spanwise.prediction.load import load_torch
    from spanwise.prediction.scoring import predict_split

    name = printable(run.absolute().name)
    others = _named(against, name)
    predictor = load_torch(run, reading.device)
    model = predictor.model
    if model.needs_spans and others:
        raise SpanwiseError(f"{run}: this model types given spans and finds none by itself, so it has no F1 to compare")
    gold_ledger = Ledger()
    done = predict_split(
        predictor, data, split=reading.split, format=reading.data_format, ledger=gold_ledger,
        threshold=reading.threshold, batch_size=reading.batch_size,
    )  # fmt: skip
    reading.ledger.add(gold_ledger)
    known = done.train if train is None else tuple(train_split(train, reading.data_format, reading.ledger))
    settings = _settings({"model": run, "data": data, "split": done.split, "train": train}, against, reading)
    return Subject(
        name,
        _where(data, done.split),
        done.gold,
        done.predicted,
        train=known,
        splits=done.corpus.splits,
        settings=settings | dict(_run_settings(run, model.config.model_dump())),
        against=_outputs(others, done.gold, data, reading),
        notes=_lost(gold_ledger),
        given_spans=model.needs_spans,
        finds_relations=model.head.prediction_head.finds_relations,
        more=model_parts(model, done.gold, done.predicted, run=run, context=done.context, projection=reading.projection),
    )


def _named(against: Sequence[str], name: str) -> list[NamedSystem]:
    systems = named_systems(against)
    if any(system.name == name for system in systems):
        raise SpanwiseError(f"both systems are called {name!r}; name the other one: --against NAME=PATH")
    return systems


def _outputs(
    systems: Sequence[NamedSystem], gold: Sequence[Sentence], data: Path, reading: Reading
) -> dict[str, list[list[Sentence]]]:
    """What other systems have for the same sentences."""
    found = {}
    for system in systems:
        runs = outputs(
            system, gold, data, reading.split, format=reading.pred_format, data_format=reading.data_format,
            ledger=reading.ledger, device=reading.device,
        )  # fmt: skip
        found[system.name] = [list(apply_threshold(run, reading.threshold)) for run in runs]
    return found


def _lost(ledger: Ledger) -> tuple[str, ...]:
    """What gold's file has and the reader could not take is missing in every denominator: whoever reads the score must know."""
    return (f"not read from gold, and not counted: {ledger}",) if ledger.lost else ()


def _where(data: Path, split: str) -> str:
    """What data is called: a corpus by its folder and split, a file by its name, with its folder's where that says little.

    >>> _where(Path("/corpora/genia"), "test"), _where(Path("/corpora/genia/test.jsonl"), "test"), _where(Path("a.conll"), "")
    ('genia test', 'genia test', 'a')
    """
    if split_of(data):
        return f"{printable(data.absolute().parent.name)} {split_of(data)}"
    return f"{stem(data)} {split}" if split not in ("", "all") else stem(data)


def _settings(named: Mapping[str, Any], against: Sequence[str], reading: Reading) -> dict[str, Any]:
    settings = {name: str(value) for name, value in named.items() if value is not None}
    if against:
        settings["against"] = ", ".join(against)
    if reading.threshold:
        settings["threshold"] = str(reading.threshold)
    return settings | {"spanwise": __version__}


def _run_settings(run: Path, config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The settings of a model and of its training, under dotted names."""
    yield from _flat("", config)
    if (run / REPORT).is_file():
        record = read_json(run / REPORT)
        wanted = ("best_epoch", "epochs", "parameters", "data", "seconds", "device", "precision", "versions", "notes")
        yield from _flat("run", {key: record[key] for key in wanted if key in record})


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, list):
        yield name, ", ".join(map(str, value))
    else:
        yield name, value
