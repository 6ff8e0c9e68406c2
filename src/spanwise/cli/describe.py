"""``spanwise describe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import FromOption, JsonOption, check_json, print_ledger, show


def describe(
    data: Annotated[
        Path, typer.Argument(metavar="DATA|MODEL", help="A file, a folder with train/dev/test files, or a model's folder.")
    ],
    source_format: FromOption = None,
    json_file: JsonOption = None,
) -> None:
    """Say what is in annotated data and what looks wrong with it, or what a trained model is made of."""
    check_json(json_file, data)
    if source_format is None and _is_model(data):
        _describe_model(data, json_file)
    else:
        _describe_data(data, source_format, json_file)


def _is_model(folder: Path) -> bool:
    """Whether a folder is a run, or nothing but a place of runs, which is told what to name instead."""
    from spanwise.corpora.splits import corpus_parts
    from spanwise.formats import is_known
    from spanwise.runs.files import is_run_folder, runs_in

    return is_run_folder(folder) or (bool(runs_in(folder)) and not corpus_parts(folder) and not is_known(folder))


def _describe_data(data: Path, source_format: str | None, json_file: Path | None) -> None:
    from rich.console import Console

    from spanwise.corpora.splits import open_splits
    from spanwise.description import describe as run
    from spanwise.description import print_description
    from spanwise.formats import Ledger

    ledger = Ledger()
    description = run(open_splits(data, source_format, ledger))
    show(json_file, description.to_json, lambda: print_description(description, Console()))
    print_ledger(ledger)


def _describe_model(folder: Path, json_file: Path | None) -> None:
    from spanwise.prediction.describe import describe_folder

    description = describe_folder(folder)
    show(json_file, description.to_json, lambda: typer.echo("\n".join(description.lines())))
