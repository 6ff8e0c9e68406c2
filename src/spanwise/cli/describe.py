"""``spanwise describe``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import FromOption, JsonOption, print_ledger, write_json


def describe(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A file, or a folder with train/dev/test files.")],
    source_format: FromOption = None,
    json_file: JsonOption = None,
) -> None:
    """Say what is in annotated data, and what looks wrong with it."""
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
