"""``spanwise formats``."""

from __future__ import annotations

from typing import Annotated

import typer


def formats(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Format to describe; all by default.")] = None,
) -> None:
    """List the annotation formats and their options."""
    from spanwise.formats import formats as known
    from spanwise.formats.registry import find_format

    for format in known().values() if name is None else [find_format(name)[0]]:
        modes = "read, write" if format.write else "read"
        needs = f"; needs spanwise[{format.pip_extra}]" if format.pip_extra else ""
        typer.echo(f"{format.name} ({modes}{needs})\n    {format.summary}")
        if format.extensions:
            typer.echo(f"    files: {' '.join(format.extensions)}")
        for title, options in (("--from", format.read_options), ("--to", format.write_options)):
            if options:
                shown = ",".join(f"{key}={option.placeholder}" for key, option in options.items())
                typer.echo(f"    {title} {format.name}:{shown}")
