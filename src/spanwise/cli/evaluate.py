"""``spanwise evaluate``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanwise.cli.options import JsonOption, print_ledger, write_json

if TYPE_CHECKING:
    from spanwise.evaluation import Evaluation
    from spanwise.formats import Ledger
    from spanwise.types import Sentence


def evaluate(
    pred: Annotated[Path, typer.Option("--pred", metavar="FILE", help="What a system predicted.")],
    gold: Annotated[Path, typer.Option("--gold", metavar="FILE", help="What is right.")],
    train: Annotated[
        Path | None,
        typer.Option(
            "--train",
            metavar="FILE_OR_FOLDER",
            help="Training data in gold's format: adds the score on the gold sentences that are not in it.",
        ),
    ] = None,
    pred_format: Annotated[
        str | None,
        typer.Option("--pred-format", metavar="FORMAT", help="Format of --pred, with options. Seen from the file if left out."),
    ] = None,
    gold_format: Annotated[
        str | None,
        typer.Option("--gold-format", metavar="FORMAT", help="Format of --gold and --train. Seen from the file if left out."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Score predictions against gold.

    Sentences are paired by id, or in order where the format has no ids; a gold sentence without a prediction counts as missed.
    An entity is right when its type and all its words are.
    """
    from dataclasses import replace

    from spanwise.evaluation import evaluate as run
    from spanwise.formats import Ledger

    ledger, gold_ledger = Ledger(), Ledger()
    known = None if train is None else _train(train, gold_format)
    evaluation = run(_sentences(gold, gold_format, gold_ledger), _sentences(pred, pred_format, ledger), known)
    if gold_ledger.lost:
        # What gold's file has and the reader could not take is missing in every denominator: whoever reads the score must know.
        evaluation = replace(evaluation, notes=(*evaluation.notes, f"not read from gold, and not counted: {gold_ledger}"))
    _show(evaluation, json_file)
    print_ledger(gold_ledger)
    print_ledger(ledger)


def _show(evaluation: Evaluation, json_file: Path | None) -> None:
    from rich.console import Console

    from spanwise.evaluation import print_evaluation

    if json_file is not None:
        write_json(evaluation.to_json(), json_file)
    if json_file is None or str(json_file) != "-":
        print_evaluation(evaluation, Console())


def _sentences(path: Path, format: str | None, ledger: Ledger) -> Iterator[Sentence]:
    """The sentences of a file, or of a folder that holds one split or is one corpus by itself."""
    from spanwise.corpora import open_splits
    from spanwise.errors import SpanwiseError

    splits = open_splits(path, format, ledger)
    if len(splits) > 1:
        raise SpanwiseError(f"{path}: has the splits {', '.join(splits)}; name the file of one")
    return next(iter(splits.values()))


def _train(path: Path, format: str | None) -> Iterator[Sentence]:
    from spanwise.corpora import open_splits
    from spanwise.errors import SpanwiseError
    from spanwise.formats import Ledger

    splits = open_splits(path, format, Ledger())
    if "train" not in splits and len(splits) > 1:
        raise SpanwiseError(f"{path}: has no train split, only {', '.join(splits)}")
    return splits["train"] if "train" in splits else next(iter(splits.values()))
