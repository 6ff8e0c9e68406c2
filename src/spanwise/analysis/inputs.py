"""Build the input of an analysis from a model and data, or from files of predictions and gold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spanwise.analysis.analyze import AnalysisInput
from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Sentence
from spanwise.core.version import __version__
from spanwise.corpora.splits import read_train_split, split_name
from spanwise.decoding.thresholds import Threshold, apply_threshold, split_threshold
from spanwise.files.names import printable, stem
from spanwise.formats import Ledger
from spanwise.prediction.outputs import types_in
from spanwise.prediction.systems import (
    System,
    check_systems,
    parse_systems,
    read_gold,
    read_predictions,
    seed_runs,
    system_predictions,
)
from spanwise.runs.folder import RunFolder

if TYPE_CHECKING:
    from spanwise.heads.base import Head

RUN_SETTINGS = ("best_epoch", "epochs", "parameters", "data", "seconds", "device", "precision", "versions", "notes")


@dataclass(frozen=True)
class InputOptions:
    """How to read files and run models.

    ``data_format`` is the format of gold and train, ``pred_format`` that of predictions. ``projection``
    is the method that draws span vectors. ``use_paper_definition`` computes attributes literally by
    the equations of Bundling Learning.
    """

    split: str = "test"
    data_format: str | None = None
    pred_format: str | None = None
    threshold: Threshold = 0.0
    batch_size: int = 64
    device: str = "auto"
    projection: str = "pca"
    use_paper_definition: bool = False
    ledger: Ledger = field(default_factory=Ledger)


def input_from_predictions(
    preds: Sequence[Path], gold: Path, *, train: Path | None, against: Sequence[str], options: InputOptions
) -> AnalysisInput:
    """Read any system's predictions, one file per run, and their gold annotations."""
    pred, *more = preds
    name = stem(pred)
    other_systems = _parse_other_systems(against, name)
    gold_ledger = Ledger()
    gold_sentences = read_gold(gold, options.data_format, gold_ledger)
    options.ledger.add(gold_ledger)
    predicted = read_predictions(pred, gold_sentences, options.pred_format, options.ledger)
    threshold = split_threshold(options.threshold, *types_in(gold_sentences, predicted))
    train_sentences = None if train is None else list(read_train_split(train, options.data_format, options.ledger))
    first = AnalysisInput(
        name,
        _data_name(gold, ""),
        gold_sentences,
        list(apply_threshold(predicted, threshold)),
        train=train_sentences,
        splits=({} if train_sentences is None else {"train": train_sentences}) | {"gold": gold_sentences},
        settings=_settings({"predictions": ", ".join(map(str, preds)), "gold": gold, "train": train}, against, options),
        other_systems=_predictions(other_systems, gold_sentences, gold, options),
        notes=_loss_notes(gold_ledger),
        use_paper_definition=options.use_paper_definition,
    )
    others = (read_predictions(path, gold_sentences, options.pred_format, options.ledger) for path in more)
    more_runs = [replace(first, predicted=list(apply_threshold(run, threshold)), other_systems={}) for run in others]
    return replace(first, more_runs=more_runs)


def input_from_runs(
    source: Path, data: Path, *, train: Path | None, against: Sequence[str], options: InputOptions
) -> AnalysisInput:
    """Predict one split of the data with a trained model, or with each run of a ``--seeds`` folder."""
    first, *more = seed_runs(source)
    name = printable(source.absolute().name)
    first_input = input_from_model(first, data, train=train, against=against, options=options, name=name)
    others = [input_from_model(run, data, train=train, against=(), options=options) for run in more]
    return replace(first_input, more_runs=others)


def input_from_model(
    run: Path, data: Path, *, train: Path | None, against: Sequence[str], options: InputOptions, name: str = ""
) -> AnalysisInput:
    """Load a trained model and predict one split of the data; ``name`` is that of its folder by default."""
    from spanwise.analysis.model_sections import model_sections
    from spanwise.prediction.load import load_torch, model_folder
    from spanwise.prediction.scoring import check_split, predict_split

    name = name or printable(run.absolute().name)
    other_systems = _parse_other_systems(against, name)
    run = model_folder(run)
    check_split(data, options.split, options.data_format)
    check_systems(other_systems, options.pred_format)
    predictor = load_torch(run, options.device)
    model = predictor.model
    if model.needs_spans and other_systems:
        raise SpanwiseError(f"{run}: this model types given spans and predicts no entities, so it has no F1 to compare")
    gold_ledger = Ledger()
    result = predict_split(
        predictor, data, split=options.split, format=options.data_format, ledger=gold_ledger,
        threshold=options.threshold, batch_size=options.batch_size,
    )  # fmt: skip
    options.ledger.add(gold_ledger)
    train_sentences = result.train if train is None else tuple(read_train_split(train, options.data_format, options.ledger))
    settings = _settings({"model": run, "data": data, "split": result.split, "train": train}, against, options)
    return AnalysisInput(
        name,
        _data_name(data, result.split),
        result.gold,
        result.predicted,
        train=train_sentences,
        splits=result.corpus.splits,
        settings=settings | dict(_run_settings(run, model.config.model_dump())),
        other_systems=_predictions(other_systems, result.gold, data, options),
        notes=(*result.notes, *_loss_notes(gold_ledger), *_width_notes(model.head.prediction_head, result.gold)),
        use_paper_definition=options.use_paper_definition,
        is_typing=model.needs_spans,
        finds_relations=model.head.prediction_head.finds_relations,
        model_sections=model_sections(
            model, result.gold, result.predicted, run=run, context=result.context, projection=options.projection
        ),
    )


def _parse_other_systems(against: Sequence[str], name: str) -> list[System]:
    systems = parse_systems(against)
    if any(system.name == name for system in systems):
        raise SpanwiseError(f"two systems are named {name!r}; rename the other one with --against NAME=PATH")
    return systems


def _predictions(
    systems: Sequence[System], gold: Sequence[Sentence], data: Path, options: InputOptions
) -> dict[str, list[list[Sentence]]]:
    """Return the predictions of each run of other systems for the same sentences."""
    predictions = {}
    for system in systems:
        runs = system_predictions(
            system, gold, data, options.split, format=options.pred_format, data_format=options.data_format,
            ledger=options.ledger, device=options.device, threshold=options.threshold,
        )  # fmt: skip
        predictions[system.name] = list(runs)
    return predictions


def _loss_notes(ledger: Ledger) -> tuple[str, ...]:
    """Report gold annotations that could not be read, because all recalls ignore them."""
    return (f"gold annotations that could not be read and are not counted: {ledger}",) if ledger.lost else ()


def _width_notes(head: Head, gold: Sequence[Sentence]) -> tuple[str, ...]:
    """State the widest span (epsilon of Bundling Learning), because entities that are wider are always missed."""
    if head.widest_span is None:
        return ()
    unreachable = sum(map(head.count_unreachable, gold))
    return (f"widest span (ε): {head.widest_span}; gold entities that the model cannot predict: {unreachable:,}",)


def _data_name(data: Path, split: str) -> str:
    """Return the name of a corpus with its split, or of a file; a file named after a split gets its folder's name.

    >>> _data_name(Path("/corpora/genia"), "test"), _data_name(Path("/corpora/genia/test.jsonl"), "test")
    ('genia test', 'genia test')
    >>> _data_name(Path("a.conll"), "")
    'a'
    """
    if split_name(data):
        return f"{printable(data.absolute().parent.name)} {split_name(data)}"
    return f"{stem(data)} {split}" if split not in ("", "all") else stem(data)


def _settings(inputs: Mapping[str, Any], against: Sequence[str], options: InputOptions) -> dict[str, Any]:
    settings = {name: str(value) for name, value in inputs.items() if value is not None}
    if against:
        settings["against"] = ", ".join(against)
    if isinstance(options.threshold, Mapping):
        settings["threshold"] = ", ".join(f"{type} {score:g}" for type, score in options.threshold.items())
    elif options.threshold:
        settings["threshold"] = str(options.threshold)
    return settings | {"spanwise": __version__}


def _run_settings(run: Path, config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the configuration of a model and the record of its training, with dotted names."""
    yield from _flatten("", config)
    folder = RunFolder(run)
    if folder.is_finished:
        record = folder.read_report()
        yield from _flatten("run", {key: record[key] for key in RUN_SETTINGS if key in record})


def _flatten(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flatten(f"{name}.{key}" if name else str(key), item)
    elif isinstance(value, list):
        yield name, ", ".join(map(str, value))
    else:
        yield name, value
