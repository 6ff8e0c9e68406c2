"""``spanwise compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import (
    DeviceOption,
    EncodingOption,
    GoldFormatOption,
    GoldOption,
    JsonOption,
    PaperAttributesOption,
    PredFormatOption,
    SplitOption,
    ThreadsOption,
    check_target_file,
    print_ledger,
    show,
    with_encoding,
)


def compare(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM",
            help="[NAME=]PATH[,PATH...]: prediction files or run folders, one per run.",
        ),
    ],
    gold: GoldOption = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DATA", help="Folder with train/dev/test files, instead of --gold.")
    ] = None,
    split: SplitOption = "test",
    buckets: Annotated[
        str | None,
        typer.Option(
            "--buckets", metavar="ATTRIBUTES", help="Also compare by attribute: eLen,eCon,eDen:4 (four equal-sized buckets)."
        ),
    ] = None,
    errors: Annotated[bool, typer.Option("--errors", help="Also compare the kinds of errors.")] = False,
    paper_attributes: PaperAttributesOption = False,
    train: Annotated[
        Path | None,
        typer.Option(
            "--train", metavar="FILE_OR_FOLDER", help="Training data for --buckets; the train split of DATA by default."
        ),
    ] = None,
    pred_format: PredFormatOption = None,
    gold_format: GoldFormatOption = None,
    encoding: EncodingOption = None,
    device: DeviceOption = "auto",
    threads: ThreadsOption = None,
    json_file: JsonOption = None,
) -> None:
    """Compare systems on the same data, with significance tests.

    Also counts the entities that only one system predicts, and the recall of all systems combined.
    The F1 of a system with several runs (seeds) is their mean; runs are paired in order. A folder
    written by `spanwise train --seeds` is a system with several runs. --buckets and --errors compare
    the other systems with the first.
    """
    from rich.console import Console

    from spanwise.corpora.splits import open_splits, read_single_split, read_train_split, select_split
    from spanwise.evaluation.buckets import check_attribute
    from spanwise.evaluation.comparison import compare_systems
    from spanwise.evaluation.comparison_table import print_comparison
    from spanwise.formats import Ledger
    from spanwise.prediction.systems import check_systems, parse_systems, system_predictions

    pred_format = with_encoding(pred_format, encoding)
    gold_format = with_encoding(gold_format, encoding)
    if (gold is None) == (data is None):
        raise typer.BadParameter("pass either --gold FILE or --data DATA")
    source = gold or data
    assert source is not None
    attributes, compared, ledger, gold_ledger = parse_buckets(buckets), parse_systems(systems), Ledger(), Ledger()
    if len(compared) < 2:
        raise typer.BadParameter("expected two or more systems")
    check_target_file(json_file, source, train, *(path for system in compared for path in system.paths))
    if gold is not None:
        gold_sentences = list(read_single_split(gold, gold_format, gold_ledger))
    else:
        splits = open_splits(source, gold_format, gold_ledger)
        split = select_split(splits, split, source)
        gold_sentences = list(splits[split])
        train = source if train is None and "train" in splits and split != "train" else train
    for attribute, count in attributes.items():
        check_attribute(attribute, count, has_train=train is not None)
    check_systems(compared, pred_format)
    known = None if train is None or not attributes else read_train_split(train, gold_format, ledger)
    predictions = {
        system.name: list(
            system_predictions(
                system, gold_sentences, source, split, format=pred_format, data_format=gold_format, ledger=ledger, device=device
            )
        )
        for system in compared
    }
    result = compare_systems(gold_sentences, predictions, known, buckets=attributes, use_paper_definition=paper_attributes)
    show(json_file, result.to_json, lambda: print_comparison(result, Console(), with_errors=errors))
    print_ledger(gold_ledger)
    print_ledger(ledger)


def parse_buckets(buckets: str | None) -> dict[str, int | None]:
    """Parse ``eLen,eDen:4`` into attributes and their number of equal-sized buckets, if given."""
    attributes: dict[str, int | None] = {}
    for part in buckets.split(",") if buckets else ():
        name, colon, count = part.partition(":")
        if colon and not count.isdecimal():
            raise typer.BadParameter(f"--buckets {part}: expected a number of buckets after the colon")
        attributes[name] = int(count) if colon else None
    return attributes
