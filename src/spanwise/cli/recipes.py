"""``spanwise recipes``."""

from __future__ import annotations

import typer


def recipes() -> None:
    """List the systems that can be trained, with their paper and settings."""
    from spanwise.config import configure
    from spanwise.config import recipes as known
    from spanwise.heads import head_class

    for name in known():
        config = configure(name)
        kind = config.head["kind"]
        typer.echo(f"{name}\n    {config.title}\n    {config.paper}")
        settings = head_class(kind).settings_class.model_validate({k: v for k, v in config.head.items() if k != "kind"})
        values = ", ".join(f"{key}={value}" for key, value in settings.model_dump().items())
        typer.echo(f"    head.{{{values}}}")
