"""``spanwise export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A run folder.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="The folder to write, new or empty.")],
) -> None:
    """Write a trained model without what only its training needed: checkpoints, and the branch of a bundle that is not used."""
    from spanwise.inference.export import export as run
    from spanwise.model import size

    written = run(model, out)
    typer.echo(f"wrote {out}: {written.config.head['kind']}, {size(written):,} weights")
