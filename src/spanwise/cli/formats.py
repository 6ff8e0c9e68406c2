"""``spanwise formats``."""

from __future__ import annotations

import typer


def formats() -> None:
    """List the formats that can be read and written, with their options."""
    from spanwise.formats import formats as known

    for format in known().values():
        modes = "read, write" if format.write else "read"
        needs = f"; needs spanwise[{format.extra}]" if format.extra else ""
        typer.echo(f"{format.name} ({modes}{needs})\n    {format.summary}")
        if format.extensions:
            typer.echo(f"    files: {' '.join(format.extensions)}")
        for title, options in (("--from", format.read_options), ("--to", format.write_options)):
            if options:
                shown = ",".join(f"{key}={option.shown}" for key, option in options.items())
                typer.echo(f"    {title} {format.name}:{shown}")
