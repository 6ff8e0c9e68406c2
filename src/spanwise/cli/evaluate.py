"""``spanwise evaluate``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanwise.cli.options import JsonOption, print_ledger, write_json

if TYPE_CHECKING:
    from spanwise.evaluation import Evaluation
    from spanwise.formats import Ledger
    from spanwise.types import Sentence


def evaluate(
    model: Annotated[Path | None, typer.Argument(metavar="[MODEL]", help="A run folder, with the data to score it on.")] = None,
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA]", help="A file, or a folder with train/dev/test files.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Which split of a DATA folder.")] = "test",
    pred: Annotated[Path | None, typer.Option("--pred", metavar="FILE", help="What a system predicted, with --gold.")] = None,
    gold: Annotated[Path | None, typer.Option("--gold", metavar="FILE", help="What is right.")] = None,
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
        typer.Option(
            "--gold-format", metavar="FORMAT", help="Format of DATA, --gold and --train. Seen from the file if left out."
        ),
    ] = None,
    threshold: Annotated[float, typer.Option("--threshold", min=0, max=1, help="Leave out entities with a lower score.")] = 0.0,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1)] = 64,
    device: Annotated[str, typer.Option("--device", metavar="cpu|cuda|auto")] = "auto",
    json_file: JsonOption = None,
) -> None:
    """Score a model on data, or any system's predictions (--pred) against gold (--gold).

    Sentences are paired by id, or in order where the format has no ids; a gold sentence without a prediction counts as missed.
    An entity is right when its type and all its words are.
    """
    from dataclasses import replace

    from spanwise.evaluation import evaluate as run
    from spanwise.formats import Ledger

    from_files = pred is not None or gold is not None
    if from_files == (model is not None) or (from_files and None in (pred, gold)) or (model is not None and data is None):
        raise typer.BadParameter("give either MODEL and DATA, or --pred FILE and --gold FILE")
    ledger, gold_ledger = Ledger(), Ledger()
    known: Iterable[Sentence] | None = None if train is None else _train(train, gold_format)
    if model is not None and data is not None:
        right, context, seen = _data(data, split, gold_format, gold_ledger)
        known = seen if known is None else known
        evaluation = run(right, _predicted(model, right, context, threshold, batch_size, device), known)
    elif pred is not None and gold is not None:
        evaluation = run(_sentences(gold, gold_format, gold_ledger), _sentences(pred, pred_format, ledger), known)
    if gold_ledger.lost:
        # What gold's file has and the reader could not take is missing in every denominator: whoever reads the score must know.
        evaluation = replace(evaluation, notes=(*evaluation.notes, f"not read from gold, and not counted: {gold_ledger}"))
    _show(evaluation, json_file)
    print_ledger(gold_ledger)
    print_ledger(ledger)


def _data(
    path: Path, split: str, format: str | None, ledger: Ledger
) -> tuple[Sequence[Sentence], Sequence[Sentence], Sequence[Sentence] | None]:
    """The sentences to score, all sentences of the corpus (for document context), and those of train where there are any."""
    from spanwise.corpora import read_corpus
    from spanwise.errors import SpanwiseError

    corpus = read_corpus(path, format, ledger)
    if split not in corpus and len(corpus.splits) == 1:
        split = next(iter(corpus))
    if split not in corpus:
        raise SpanwiseError(f"{path}: has no {split} split, only {', '.join(corpus)}")
    everything = [sentence for sentences in corpus.splits.values() for sentence in sentences]
    return corpus[split], everything, corpus["train"] if "train" in corpus and split != "train" else None


def _predicted(
    folder: Path, sentences: Sequence[Sentence], context: Sequence[Sentence], threshold: float, batch_size: int, device: str
) -> Iterator[Sentence]:
    from spanwise.inference.load import load
    from spanwise.inference.predictor import predict

    return predict(load(folder, device).model, sentences, threshold=threshold, batch_size=batch_size, context=context)


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
