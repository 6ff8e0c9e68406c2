"""``spanwise evaluate``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from spanwise.cli.options import (
    BatchOption,
    DataArgument,
    DeviceOption,
    EncodingOption,
    GoldFormatOption,
    GoldOption,
    JsonOption,
    ModelArgument,
    PredFormatOption,
    PredOption,
    SplitOption,
    ThreadsOption,
    ThresholdsOption,
    check_target_file,
    print_ledger,
    show,
    with_encoding,
)
from spanwise.core.terminal import escape_controls

if TYPE_CHECKING:
    from spanwise.core.types import Sentence
    from spanwise.decoding.thresholds import Threshold
    from spanwise.evaluation import Evaluation
    from spanwise.evaluation.threshold_search import ThresholdSearch
    from spanwise.evaluation.typing import TypingScores
    from spanwise.formats import Ledger


def evaluate(
    model: ModelArgument = None,
    data: DataArgument = None,
    split: SplitOption = "test",
    pred: PredOption = None,
    gold: GoldOption = None,
    train: Annotated[
        Path | None,
        typer.Option(
            "--train",
            metavar="FILE_OR_FOLDER",
            help="Training data; also score the sentences that are not in it.",
        ),
    ] = None,
    pred_format: PredFormatOption = None,
    gold_format: GoldFormatOption = None,
    encoding: EncodingOption = None,
    threshold: ThresholdsOption = None,
    should_find_threshold: Annotated[
        bool,
        typer.Option("--find-threshold", help="Use the threshold with the best F1 on dev (or --pred)."),
    ] = False,
    is_per_type: Annotated[
        bool, typer.Option("--per-type", help="Use the best threshold of each type; needs --find-threshold.")
    ] = False,
    should_save: Annotated[
        bool, typer.Option("--save", help="Save the threshold in MODEL for all predictions; needs --find-threshold.")
    ] = False,
    last_words: Annotated[
        bool, typer.Option("--last-words", help="Also score relations by last words only, as on WebNLG.")
    ] = False,
    batch_size: BatchOption = 64,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json_file: JsonOption = None,
) -> None:
    """Score a model on DATA, or predictions against gold.

    Pass MODEL and DATA, or --pred and --gold. Sentences are paired by id, or in order if the format
    has no ids; the entities of an unpaired gold sentence count as missed. An entity is correct if
    its type and all its words are correct; a relation, if its type and both entities are correct.
    """
    from spanwise.corpora.splits import read_train_split
    from spanwise.formats import Ledger
    from spanwise.prediction.outputs import parse_thresholds

    pred_format = with_encoding(pred_format, encoding)
    gold_format = with_encoding(gold_format, encoding)
    options = ThresholdOptions(parse_thresholds(threshold or ()), should_find_threshold, is_per_type)
    if should_find_threshold and threshold:
        raise typer.BadParameter("pass either --threshold or --find-threshold")
    if (should_save or is_per_type) and not should_find_threshold:
        raise typer.BadParameter(f"{'--save' if should_save else '--per-type'} needs --find-threshold")
    check_target_file(json_file, model, data, pred, gold, train)

    ledger, gold_ledger, saved = Ledger(), Ledger(), ""
    known = None if train is None else read_train_split(train, gold_format, ledger)
    if model is not None and data is not None and pred is None and gold is None:
        evaluation, search, types = _evaluate_model(
            model, data, split, gold_format, gold_ledger, options, train=known, batch_size=batch_size, device=device,
            last_words=last_words,
        )  # fmt: skip
        if search is not None and should_save:
            saved = _save(model, search, is_per_type, types)
    elif pred is not None and gold is not None and model is None:
        if should_save:
            raise typer.BadParameter("--save needs MODEL and DATA")
        from spanwise.prediction.systems import read_gold, read_predictions

        gold_sentences = read_gold(gold, gold_format, gold_ledger)
        predicted = read_predictions(pred, gold_sentences, pred_format, ledger)
        evaluation, search, _ = _evaluate_predictions(gold_sentences, predicted, options, known, last_words=last_words)
    else:
        raise typer.BadParameter("pass either MODEL and DATA, or --pred FILE and --gold FILE")
    if gold_ledger.lost:
        # Gold annotations that could not be read are missing from recall, so the report must mention them.
        note = f"gold annotations that could not be read and are not counted: {gold_ledger}"
        evaluation = replace(evaluation, notes=(*evaluation.notes, note))
    show(
        json_file,
        lambda: evaluation.to_json() | ({} if search is None else {"threshold": search.to_json()}),
        lambda: _print(evaluation, search),
    )
    if saved:
        typer.echo(escape_controls(saved), err=str(json_file) == "-")
    print_ledger(gold_ledger)
    print_ledger(ledger)


@dataclass(frozen=True)
class ThresholdOptions:
    """The threshold that a user passes, or how to search for the best one."""

    requested: Threshold
    should_find: bool
    is_per_type: bool

    def choose(self, search: ThresholdSearch | None, types: Sequence[str]) -> Threshold:
        from spanwise.decoding.thresholds import Thresholds

        if search is None:
            return self.requested
        return Thresholds(search.thresholds(types, is_per_type=self.is_per_type))  # relations keep their own


class Result(NamedTuple):
    """The scores, and the search for a threshold if there was one."""

    evaluation: Evaluation | TypingScores
    search: ThresholdSearch | None
    types: Sequence[str]


def _evaluate_model(
    model: Path, data: Path, split: str, format: str | None, ledger: Ledger, options: ThresholdOptions, *,
    train: Iterable[Sentence] | None, batch_size: int, device: str, last_words: bool,
) -> Result:  # fmt: skip
    """Predict a split and score the predictions; thresholds are searched on dev."""
    from spanwise.prediction.load import load
    from spanwise.prediction.scoring import check_split, score_model
    from spanwise.prediction.threshold_search import find_dev_split, find_threshold

    # Check the data before the model is loaded.
    check_split(data, split, format)
    if options.should_find:
        find_dev_split(data, format)
    predictor = load(model, device)
    search = find_threshold(predictor, data, format=format, batch_size=batch_size) if options.should_find else None
    evaluation = score_model(
        predictor, data, split=split, format=format, ledger=ledger, train=train, batch_size=batch_size,
        threshold=options.choose(search, predictor.types), last_words=last_words,
    )  # fmt: skip
    return Result(evaluation, search, predictor.types)


def _evaluate_predictions(
    gold: Sequence[Sentence], predicted: Sequence[Sentence], options: ThresholdOptions, train: Iterable[Sentence] | None, *,
    last_words: bool,
) -> Result:  # fmt: skip
    """Score the predictions of any system; thresholds are searched on the same predictions."""
    from spanwise.decoding.thresholds import split_threshold
    from spanwise.evaluation import apply_threshold
    from spanwise.evaluation import evaluate as run
    from spanwise.evaluation.threshold_search import search_threshold
    from spanwise.prediction.outputs import types_in

    types, relation_types = types_in(gold, predicted)
    split_threshold(options.requested, types, relation_types)  # reports unknown types before the search
    search = search_threshold(gold, predicted) if options.should_find else None
    chosen = split_threshold(options.choose(search, types), types, relation_types)
    evaluation = run(gold, list(apply_threshold(predicted, chosen)), train, last_words=last_words)
    return Result(evaluation, search, types)


def _save(model: Path, search: ThresholdSearch, is_per_type: bool, types: Sequence[str]) -> str:
    """Save the thresholds in the model's folder; return a line that says so."""
    from spanwise.core.errors import SpanwiseError
    from spanwise.prediction.load import model_folder
    from spanwise.runs.folder import RunFolder

    if search.calibration.best is None:
        raise SpanwiseError(f"no threshold to save: none of the predictions on {search.data} is correct")
    thresholds = search.thresholds(types, is_per_type=is_per_type)
    RunFolder(model_folder(model)).save_thresholds(thresholds)
    listed = ", ".join(f"{type} {score:g}" for type, score in thresholds.items()) if is_per_type else f"{search.threshold:g}"
    return f"saved in {model}: threshold {listed}; predictions use it by default"


def _print(evaluation: Evaluation | TypingScores, search: ThresholdSearch | None) -> None:
    from rich.console import Console

    from spanwise.evaluation import Evaluation, print_evaluation
    from spanwise.evaluation.typing import print_typing

    for line in search.lines if search else ():
        typer.echo(escape_controls(line))
    if isinstance(evaluation, Evaluation):
        print_evaluation(evaluation, Console())
    else:
        print_typing(evaluation, Console())
