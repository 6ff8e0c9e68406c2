"""Arguments and options that several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from spanwise.formats import Ledger

FromOption = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="FORMAT", help="Format of the input, with options: conll:labels=2+3. Seen from the file if left out."
    ),
]
FromOrTextOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="Format of the input, with options (conll:labels=2+3), or text: plain text. Seen from the file if left out.",
    ),
]
# Of the commands that take a model and data, or predictions and gold.
ModelArgument = Annotated[Path | None, typer.Argument(metavar="MODEL", help="A run folder, with the data to try it on.")]
DataArgument = Annotated[Path | None, typer.Argument(metavar="DATA", help="A file, or a folder with train/dev/test files.")]
SplitOption = Annotated[str, typer.Option("--split", help="Which split of a DATA folder; for a model.")]
PredOption = Annotated[Path | None, typer.Option("--pred", metavar="FILE", help="What a system predicted, with --gold.")]
GoldOption = Annotated[Path | None, typer.Option("--gold", metavar="FILE", help="What is right.")]
PredFormatOption = Annotated[
    str | None,
    typer.Option(
        "--pred-format", metavar="FORMAT", help="Format of predictions, with options. Seen from the file if left out."
    ),
]
GoldFormatOption = Annotated[
    str | None,
    typer.Option(
        "--gold-format", metavar="FORMAT", help="Format of gold and --train, with options. Seen from the file if left out."
    ),
]
ThresholdOption = Annotated[
    float, typer.Option("--threshold", min=0, max=1, help="Leave out entities and relations with a lower score.")
]
BatchOption = Annotated[int, typer.Option("--batch-size", min=1, help="For a model.")]
DeviceOption = Annotated[str, typer.Option("--device", metavar="cpu|cuda|auto", help="For a model.")]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result for programs ('-': standard output).")
]


def check_json(json_file: Path | None, *inputs: Path | None) -> None:
    """Refuse a file for the result that the data or the model is read from, before anything is."""
    from spanwise.files.writing import check_no_input

    if json_file is not None and str(json_file) != "-":
        check_no_input(json_file, [file for path in inputs if path is not None for file in _files_of(path)])


def _files_of(path: Path) -> list[Path]:
    """What is read of a run or corpus folder, beside which a result may lie; anything else is read whole."""
    from spanwise.corpora.splits import corpus_parts
    from spanwise.runs.files import files_of_run, is_run_folder

    if is_run_folder(path):
        return files_of_run(path)
    if parts := corpus_parts(path):
        return [file for files in parts.values() for file in files]
    return [*path.rglob("*.txt"), *path.rglob("*.ann")] if path.is_dir() else [path]


def show(json_file: Path | None, to_json: Callable[[], Any], print_it: Callable[[], None]) -> None:
    """Write a result for programs where that is asked for, and print it for people unless the other goes to standard output."""
    from spanwise.files.writing import atomic_output

    if json_file is not None:
        text = json.dumps(to_json(), ensure_ascii=False, indent=1) + "\n"
        if str(json_file) == "-":
            sys.stdout.write(text)
            return
        with atomic_output(json_file) as temporary:
            temporary.write_text(text, encoding="utf-8")
    print_it()


def print_ledger(ledger: Ledger) -> None:
    """What was mended or left out while reading and writing, on standard error."""
    for what, count in ledger.notes.items():
        sys.stderr.write(f"note: {count:,} {what}\n")
    if ledger.lost:
        sys.stderr.write(f"lost: {ledger}\n")
