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
    check_target,
    print_ledger,
    show,
)

if TYPE_CHECKING:
    from spanwise.evaluation import Evaluation
    from spanwise.evaluation.threshold_search import ThresholdSearch
    from spanwise.evaluation.typing import TypingScores


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
    threshold: ThresholdOption = 0.0,
    should_find_threshold: Annotated[
        bool,
        typer.Option("--find-threshold", help="Use the threshold with the best F1 on dev (or --pred)."),
    ] = False,
    last_words: Annotated[
        bool, typer.Option("--last-words", help="Also score relations by last words only, as on WebNLG.")
    ] = False,
    batch_size: BatchOption = 64,
    device: DeviceOption = "auto",
    json_file: JsonOption = None,
) -> None:
    """Score a model on DATA, or any system's predictions (--pred) against --gold.

    Sentences are paired by id, or in order if the format has no ids; the entities of an unpaired
    gold sentence count as missed. An entity is correct if its type and all its words are, a
    relation if its type and both its entities are.
    """
    from dataclasses import replace

    if should_find_threshold and threshold:
        raise typer.BadParameter("pass either --threshold or --find-threshold")
    check_target(json_file, model, data, pred, gold, train)

    from spanwise.corpora.splits import read_train_split
    from spanwise.formats import Ledger

    evaluation: Evaluation | TypingScores
    ledger, gold_ledger = Ledger(), Ledger()
    known = None if train is None else read_train_split(train, gold_format, ledger)
    if model is not None and data is not None and pred is None and gold is None:
        from spanwise.prediction.load import load
        from spanwise.prediction.scoring import score_model
        from spanwise.prediction.threshold_search import find_threshold

        predictor = load(model, device)
        search = find_threshold(predictor, data, format=gold_format, batch_size=batch_size) if should_find_threshold else None
        evaluation = score_model(
            predictor, data, split=split, format=gold_format, ledger=gold_ledger, train=known, batch_size=batch_size,
            threshold=search.threshold if search else threshold, last_words=last_words,
        )  # fmt: skip
    elif pred is not None and gold is not None and model is None:
        from spanwise.evaluation import apply_threshold
        from spanwise.evaluation import evaluate as run
        from spanwise.evaluation.threshold_search import search_threshold
        from spanwise.prediction.systems import read_gold, read_predictions

        gold_sentences = read_gold(gold, gold_format, gold_ledger)
        predicted = read_predictions(pred, gold_sentences, pred_format, ledger)
        search = search_threshold(gold_sentences, predicted) if should_find_threshold else None
        predicted = list(apply_threshold(predicted, search.threshold if search else threshold))
        evaluation = run(gold_sentences, predicted, known, last_words=last_words)
    else:
        raise typer.BadParameter("pass either MODEL and DATA, or --pred FILE and --gold FILE")
    if gold_ledger.lost:
        # Gold annotations that could not be read are missing from recall, so the report must mention them.
        evaluation = replace(
            evaluation, notes=(*evaluation.notes, f"gold annotations that could not be read and are not counted: {gold_ledger}")
        )
    show(
        json_file,
        lambda: evaluation.to_json() | ({} if search is None else {"threshold": search.to_json()}),
        lambda: _print(evaluation, search),
    )
    print_ledger(gold_ledger)
    print_ledger(ledger)


def _print(evaluation: Evaluation | TypingScores, search: ThresholdSearch | None) -> None:
    from rich.console import Console

    from spanwise.evaluation import Evaluation, print_evaluation
    from spanwise.evaluation.typing import print_typing

    for line in search.lines if search else ():
        typer.echo(line)
    if isinstance(evaluation, Evaluation):
        print_evaluation(evaluation, Console())
    else:
        print_typing(evaluation, Console())
