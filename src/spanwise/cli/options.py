"""Arguments and options that several commands share."""

from __future__ import annotations

import json
import sys
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


def write_json(value: Any, path: Path) -> None:
    """A result for programs: a file that appears whole, or standard output."""
    from spanwise.formats.files import replacing

    text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
        return
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def note_unfinished(model: str | Path) -> None:
    """Say it, on standard error, where a model is that of a training that has not ended."""
    from spanwise.config import is_unfinished

    if is_unfinished(Path(model)):
        sys.stderr.write(f"note: {model}: its training is unfinished; this is the best epoch so far\n")


def print_ledger(ledger: Ledger) -> None:
    """What was mended or left out while reading and writing, on standard error."""
    for what, count in ledger.notes.items():
        sys.stderr.write(f"note: {count:,} {what}\n")
    if ledger.lost:
        sys.stderr.write(f"lost: {ledger}\n")
