"""``spanwise convert``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import FromOption, print_ledger


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file, a folder with train/dev/test, or a brat folder.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; a folder for several splits or brat.")],
    source_format: FromOption = None,
    target_format: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="Format of the output, with options: conll:scheme=bioes,levels=3."),
    ] = None,
    lossy: Annotated[bool, typer.Option("--lossy", help="Write what fits when the format cannot hold everything.")] = False,
) -> None:
    """Convert annotated text from one format to another.

    Nothing is lost silently: what the target format cannot hold is counted, and nothing is written unless --lossy is given.
    `spanwise formats` lists the formats and their options.
    """
    from spanwise.corpora.conversion import convert as run
    from spanwise.files.writing import is_stream

    result = run(source, target, source_format, target_format, lossy=lossy)
    to_stream = is_stream(target)  # data may go to standard output: what is said about it goes beside
    for split, counts in result.counts.items():
        written = result.written[split]
        rest = "" if written == counts else f"; written: {_counted(written)}"
        typer.echo(f"{split}: {_counted(counts)}{rest}", err=to_stream)
    print_ledger(result.ledger)
    typer.echo(f"wrote {target} ({result.format})", err=to_stream)


def _counted(counts: Mapping[str, int]) -> str:
    return f"{counts['sentences']:,} sentences, {counts['entities']:,} entities, {counts['relations']:,} relations"
