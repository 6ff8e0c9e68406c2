"""``spanwise compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import GoldFormatOption, GoldOption, JsonOption, PredFormatOption, check_json, print_ledger, show


def compare(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM",
            help="[NAME=]PATH[,PATH...]: a file of predictions or a run folder; several, or a folder of --seeds, are its runs.",
        ),
    ],
    gold: GoldOption = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DATA", help="Instead of --gold: a folder with train/dev/test files.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Which split of DATA.")] = "test",
    buckets: Annotated[
        str | None,
        typer.Option(
            "--buckets", metavar="ATTRIBUTES", help="Compare by these too: eLen,eCon,eDen:4 (:4 makes four of equal count)."
        ),
    ] = None,
    errors: Annotated[bool, typer.Option("--errors", help="Compare the kinds of mistakes too.")] = False,
    train: Annotated[
        Path | None,
        typer.Option("--train", metavar="FILE_OR_FOLDER", help="Training data for --buckets; DATA's own if left out."),
    ] = None,
    pred_format: PredFormatOption = None,
    gold_format: GoldFormatOption = None,
    device: Annotated[str, typer.Option("--device", metavar="cpu|cuda|auto", help="For run folders.")] = "auto",
    json_file: JsonOption = None,
) -> None:
    """Compare systems on the same gold: paired tests on F1, what each finds alone, and what they could find together.

    Where systems have several runs (seeds), F1 is their mean, and runs are paired in order. With --buckets and --errors, the
    others are compared with the first.
    """
    from rich.console import Console

    from spanwise.corpora.splits import chosen_split, one_split, open_splits, train_split
    from spanwise.evaluation.comparison import compare_systems
    from spanwise.evaluation.comparison_table import print_comparison
    from spanwise.formats import Ledger
    from spanwise.prediction.systems import named_systems, outputs

    if (gold is None) == (data is None):
        raise typer.BadParameter("give either --gold FILE or --data DATA")
    source = gold or data
    assert source is not None
    asked, named, ledger, gold_ledger = asked_buckets(buckets), named_systems(systems), Ledger(), Ledger()
    if len(named) < 2:
        raise typer.BadParameter("give two systems or more")
    check_json(json_file, source, train, *(path for system in named for path in system.paths))
    if gold is not None:
        right = list(one_split(gold, gold_format, gold_ledger))
    else:
        splits = open_splits(source, gold_format, gold_ledger)
        split = chosen_split(splits, split, source)
        right = list(splits[split])
        train = source if train is None and "train" in splits and split != "train" else train
    known = None if train is None or not asked else train_split(train, gold_format, ledger)
    found = {
        system.name: list(
            outputs(system, right, source, split, format=pred_format, data_format=gold_format, ledger=ledger, device=device)
        )
        for system in named
    }
    result = compare_systems(right, found, known, buckets=asked)
    show(json_file, result.to_json, lambda: print_comparison(result, Console(), with_errors=errors))
    print_ledger(gold_ledger)
    print_ledger(ledger)


def asked_buckets(buckets: str | None) -> dict[str, int | None]:
    """The attributes of ``eLen,eDen:4``, each with its number of equal buckets if it has one."""
    asked: dict[str, int | None] = {}
    for part in buckets.split(",") if buckets else ():
        name, colon, number = part.partition(":")
        if colon and not number.isdecimal():
            raise typer.BadParameter(f"--buckets {part}: expected a number of buckets behind the colon")
        asked[name] = int(number) if colon else None
    return asked
