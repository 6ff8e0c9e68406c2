"""``spanwise describe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import FromOption, JsonOption, print_ledger, write_json


def describe(
    data: Annotated[
        Path, typer.Argument(metavar="DATA|MODEL", help="A file, a folder with train/dev/test files, or a run folder.")
    ],
    source_format: FromOption = None,
    json_file: JsonOption = None,
) -> None:
    """Say what is in annotated data and what looks wrong with it, or what a trained model is made of."""
    from spanwise.config import is_run_folder

    if source_format is None and is_run_folder(data):
        _describe_model(data, json_file)
    else:
        _describe_data(data, source_format, json_file)


def _describe_data(data: Path, source_format: str | None, json_file: Path | None) -> None:
    from rich.console import Console

    from spanwise.corpora import open_splits
    from spanwise.description import describe as run
    from spanwise.description import print_description
    from spanwise.formats import Ledger

    ledger = Ledger()
    description = run(open_splits(data, source_format, ledger))
    if json_file is not None:
        write_json(description.to_json(), json_file)
    if json_file is None or str(json_file) != "-":
        print_description(description, Console())
    print_ledger(ledger)


def _describe_model(folder: Path, json_file: Path | None) -> None:
    from spanwise.inference.describe import describe_model
    from spanwise.model import Model

    description = describe_model(Model.load(folder))
    if json_file is not None:
        write_json(description.to_json(), json_file)
    if json_file is None or str(json_file) != "-":
        for line in description.lines():
            typer.echo(line)
