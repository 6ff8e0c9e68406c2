"""``spanwise recipes``."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spanwise.recipes.explanation import Setting

WIDTH = 100
MEANING_COLUMN = 50


def recipes(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Recipe whose settings to explain; lists all recipes by default.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="Encoder to explain, as for `spanwise train`.")
    ] = None,
) -> None:
    """List the recipes, or explain every setting of one.

    Settings are changed with `spanwise train --set SECTION.KEY=VALUE`.
    """
    from spanwise.recipes.catalog import recipes as known

    if name is not None:
        _explain(name, encoder)
        return
    for recipe in known():
        _list(recipe)
    typer.echo("\nspanwise recipes NAME explains every setting of a recipe")


def _list(name: str) -> None:
    from spanwise.config.settings import iter_sections
    from spanwise.heads import head_settings
    from spanwise.recipes.catalog import configure

    config = configure(name)
    typer.echo("\n    ".join(filter(None, (name, config.title, config.paper))))
    for section, settings in iter_sections("head", head_settings(config.head).resolve(()).model_dump()):
        values = ", ".join(f"{key}={value}" for key, value in settings.items())
        typer.echo(f"    {section}.{{{values}}}")


def _explain(name: str, encoder: str | None) -> None:
    from spanwise.recipes.catalog import configure
    from spanwise.recipes.explanation import explain_settings

    config = configure(name, encoder=encoder)
    for line in filter(None, (name, config.title, config.paper)):
        typer.echo(textwrap.fill(line, WIDTH, initial_indent="" if line == name else "    ", subsequent_indent="    "))
    for section in explain_settings(config):
        typer.echo(f"\n{section.title}")
        for setting in section.settings:
            typer.echo(_format_setting(setting))
    typer.echo("\nchange a setting with: spanwise train … --set SECTION.KEY=VALUE")


def _format_setting(setting: Setting) -> str:
    """One or more lines: key, value and, if it differs, the default, then the meaning."""
    default = "" if setting.default in (None, setting.value) else f" (default: {setting.default})"
    start = f"  {setting.key:<32} {setting.value}{default}"
    indent = " " * MEANING_COLUMN
    if len(start) + 2 <= MEANING_COLUMN:
        return textwrap.fill(setting.meaning, WIDTH, initial_indent=f"{start:<{MEANING_COLUMN}}", subsequent_indent=indent)
    return f"{start}\n{textwrap.fill(setting.meaning, WIDTH, initial_indent=indent, subsequent_indent=indent)}"
