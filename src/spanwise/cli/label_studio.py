"""``spanwise label-studio``: config."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanwise.cli.command import Command
from spanwise.cli.options import EncodingOption, FromOption, check_target, print_ledger, with_encoding

label_studio = typer.Typer(rich_markup_mode=None, add_completion=False)


@label_studio.callback(invoke_without_command=True)
def overview(context: typer.Context) -> None:
    """Prepare a Label Studio project."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@label_studio.command(cls=Command)
def config(
    data: Annotated[Path, typer.Argument(metavar="DATA|MODEL", help="File, folder with train/dev/test files, or run folder.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write; standard output by default.")
    ] = None,
    source_format: FromOption = None,
    encoding: EncodingOption = None,
) -> None:
    """Write the labelling configuration (XML) for the types of data or a model.

    Paste it into a project: Settings, Labeling Interface, Code. Each entity type gets a label with a
    colour, each relation type an entry. The text of a task is data.text, as in tasks written by
    `spanwise predict --to label_studio`. `spanwise serve --label-studio` connects a model to the
    project.
    """
    from spanwise.files.writing import atomic_output, standard_output
    from spanwise.formats import Ledger
    from spanwise.label_studio.configuration import read_types, write_configuration

    check_target(output, data)
    ledger = Ledger()
    configuration = write_configuration(*read_types(data, with_encoding(source_format, encoding), ledger))
    if output is None or str(output) == "-":
        standard_output().write(configuration)
    else:
        with atomic_output(output) as temporary:
            temporary.write_text(configuration, encoding="utf-8")
        typer.echo(f"wrote {output}")
    print_ledger(ledger)
