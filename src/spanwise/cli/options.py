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


def print_ledger(ledger: Ledger) -> None:
    """What was mended or left out while reading and writing, on standard error."""
    for what, count in ledger.notes.items():
        sys.stderr.write(f"note: {count:,} {what}\n")
    if ledger.lost:
        sys.stderr.write(f"lost: {ledger}\n")
