"""``spanwise formats``."""

from __future__ import annotations

import typer


def formats() -> None:
    """List the annotation formats and their options."""
    from spanwise.formats import formats as known

    for format in known().values():
        modes = "read, write" if format.write else "read"
        needs = f"; needs spanwise[{format.pip_extra}]" if format.pip_extra else ""
        typer.echo(f"{format.name} ({modes}{needs})\n    {format.summary}")
        if format.extensions:
            typer.echo(f"    files: {' '.join(format.extensions)}")
        for title, options in (("--from", format.read_options), ("--to", format.write_options)):
            if options:
                shown = ",".join(f"{key}={option.placeholder}" for key, option in options.items())
                typer.echo(f"    {title} {format.name}:{shown}")
