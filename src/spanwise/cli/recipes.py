"""``spanwise recipes``."""

from __future__ import annotations

import typer


def recipes() -> None:
    """List the recipes with their papers and settings."""
    from spanwise.config.settings import iter_sections
    from spanwise.heads import head_settings
    from spanwise.recipes.catalog import configure
    from spanwise.recipes.catalog import recipes as known

    for name in known():
        config = configure(name)
        typer.echo("\n    ".join(filter(None, (name, config.title, config.paper))))
        for section, settings in iter_sections("head", head_settings(config.head).resolve(()).model_dump()):
            values = ", ".join(f"{key}={value}" for key, value in settings.items())
            typer.echo(f"    {section}.{{{values}}}")
