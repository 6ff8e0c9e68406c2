"""``spanwise convert``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.options import EncodingOption, FromOption, dash_as_standard_output, print_ledger, with_encoding
from spanwise.core.counting import counted


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="File, folder with train/dev/test files, or brat folder.")],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            callback=dash_as_standard_output,
            help="File to write, or '-'; a folder for several splits or brat.",
        ),
    ],
    source_format: FromOption = None,
    encoding: EncodingOption = None,
    target_format: Annotated[
        str | None,
        typer.Option("--to", metavar="FORMAT", help="Output format; detected from the file name by default."),
    ] = None,
    lossy: Annotated[bool, typer.Option("--lossy", help="Drop annotations that the output format cannot represent.")] = False,
) -> None:
    """Convert annotated text from one format to another.

    Nothing is dropped unless you pass --lossy: without it, an output format that cannot represent
    all annotations is an error. `spanwise formats` lists the formats and their options, as in --to
    conll:scheme=bioes,levels=3.
    """
    from spanwise.corpora.conversion import convert as run
    from spanwise.files.writing import is_stream

    source_format = with_encoding(source_format, encoding)
    result = run(source, target, source_format, target_format, lossy=lossy)
    is_to_stream = is_stream(target)  # the data may go to standard output, so messages go to standard error
    for split, counts in result.read.items():
        written = result.written[split]
        suffix = "" if written == counts else f"; written: {_format_counts(written)}"
        typer.echo(f"{split}: {_format_counts(counts)}{suffix}", err=is_to_stream)
    print_ledger(result.ledger)
    typer.echo(f"wrote {target} ({result.format})", err=is_to_stream)


def _format_counts(counts: Mapping[str, int]) -> str:
    nouns = {"sentences": "sentence", "entities": "entity", "relations": "relation"}
    return ", ".join(counted(counts[name], noun) for name, noun in nouns.items())
