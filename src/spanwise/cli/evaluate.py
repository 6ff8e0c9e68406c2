"""``spanwise evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanwise.cli.options import (
    BatchOption,
    DataArgument,
    DeviceOption,
    GoldFormatOption,
    GoldOption,
    JsonOption,
    ModelArgument,
    PredFormatOption,
    PredOption,
    SplitOption,
    ThresholdOption,
    check_json,
    print_ledger,
    show,
)

if TYPE_CHECKING:
    from spanwise.evaluation import Evaluation
    from spanwise.evaluation.threshold_search import FoundThreshold
    from spanwise.evaluation.typing import Typing


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
            help="Training data in gold's format: adds the score on the gold sentences that are not in it.",
        ),
    ] = None,
    pred_format: PredFormatOption = None,
    gold_format: GoldFormatOption = None,
    threshold: ThresholdOption = 0.0,
    finds_threshold: Annotated[
        bool,
        typer.Option(
            "--find-threshold", help="Find the threshold that is best on dev, and score with it. --pred is taken for dev."
        ),
    ] = False,
    last_words: Annotated[
        bool, typer.Option("--last-words", help="Score relations also by the entities' last words alone, as is done on WebNLG.")
    ] = False,
    batch_size: BatchOption = 64,
    device: DeviceOption = "auto",
    json_file: JsonOption = None,
) -> None:
    """Score a model on data, or any system's predictions (--pred) against gold (--gold).

    Sentences are paired by id, or in order where the format has no ids; a gold sentence without a prediction counts as missed.
    An entity is right when its type and all its words are, a relation when its type and both its entities are.
    """
    from dataclasses import replace

    if finds_threshold and threshold:
        raise typer.BadParameter("give either --threshold or --find-threshold")
    check_json(json_file, model, data, pred, gold, train)

    from spanwise.corpora.splits import train_split
    from spanwise.formats import Ledger

    evaluation: Evaluation | Typing
    ledger, gold_ledger = Ledger(), Ledger()
    known = None if train is None else train_split(train, gold_format, ledger)
    if model is not None and data is not None and pred is None and gold is None:
        from spanwise.prediction.load import load
        from spanwise.prediction.scoring import score_model
        from spanwise.prediction.threshold_search import find_threshold

        predictor = load(model, device)
        found = find_threshold(predictor, data, format=gold_format, batch_size=batch_size) if finds_threshold else None
        evaluation = score_model(
            predictor, data, split=split, format=gold_format, ledger=gold_ledger, train=known, batch_size=batch_size,
            threshold=found.threshold if found else threshold, last_words=last_words,
        )  # fmt: skip
    elif pred is not None and gold is not None and model is None:
        from spanwise.evaluation import apply_threshold
        from spanwise.evaluation import evaluate as run
        from spanwise.evaluation.threshold_search import found_threshold
        from spanwise.prediction.systems import gold_sentences, predictions

        right = gold_sentences(gold, gold_format, gold_ledger)
        predicted = predictions(pred, right, pred_format, ledger)
        found = found_threshold(right, predicted) if finds_threshold else None
        evaluation = run(
            right, apply_threshold(predicted, found.threshold if found else threshold), known, last_words=last_words
        )
    else:
        raise typer.BadParameter("give either MODEL and DATA, or --pred FILE and --gold FILE")
    if gold_ledger.lost:
        # What gold's file has and the reader could not take is missing in every denominator: whoever reads the score must know.
        evaluation = replace(evaluation, notes=(*evaluation.notes, f"not read from gold, and not counted: {gold_ledger}"))
    show(
        json_file,
        lambda: evaluation.to_json() | ({} if found is None else {"threshold": found.to_json()}),
        lambda: _print(evaluation, found),
    )
    print_ledger(gold_ledger)
    print_ledger(ledger)


def _print(evaluation: Evaluation | Typing, found: FoundThreshold | None) -> None:
    from rich.console import Console

    from spanwise.evaluation import Evaluation, print_evaluation
    from spanwise.evaluation.typing import print_typing

    for line in found.lines if found else ():
        typer.echo(line)
    if isinstance(evaluation, Evaluation):
        print_evaluation(evaluation, Console())
    else:
        print_typing(evaluation, Console())
