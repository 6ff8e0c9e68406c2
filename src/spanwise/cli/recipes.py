"""``spanwise recipes``."""

from __future__ import annotations

import typer


def recipes() -> None:
    """List the systems that can be trained, with their paper and settings."""
    from spanwise.config.settings import sections
    from spanwise.heads import head_settings
    from spanwise.recipes.catalog import configure
    from spanwise.recipes.catalog import recipes as known

    for name in known():
        config = configure(name)
        typer.echo(f"{name}\n    {config.title}\n    {config.paper}")
        for section, settings in sections("head", head_settings(config.head).fitted(()).model_dump()):
            values = ", ".join(f"{key}={value}" for key, value in settings.items())
            typer.echo(f"    {section}.{{{values}}}")
