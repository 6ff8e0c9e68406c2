"""``spanwise recipes``."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spanwise.config.settings import Config
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
    from spanwise.recipes.catalog import DEFAULT_RECIPE, configure
    from spanwise.recipes.catalog import recipes as known

    if name is not None:
        _explain(name, encoder)
        return
    if encoder is not None:
        raise typer.BadParameter("--encoder needs NAME, the recipe to explain")
    for recipe in sorted(known(), key=lambda name: (name != DEFAULT_RECIPE, name)):
        _print_title(f"{recipe} (default)" if recipe == DEFAULT_RECIPE else recipe, configure(recipe))
    typer.echo("\nspanwise recipes NAME explains every setting of a recipe")


def _print_title(name: str, config: Config) -> None:
    typer.echo(name)
    for line in filter(None, (config.title, config.paper)):
        typer.echo(textwrap.fill(line, WIDTH, initial_indent="    ", subsequent_indent="    "))


def _explain(name: str, encoder: str | None) -> None:
    from spanwise.encoders import ENCODERS
    from spanwise.encoders.pretrained import ALIASES, resolve
    from spanwise.recipes.catalog import configure
    from spanwise.recipes.explanation import explain_settings

    config = configure(name, encoder=encoder)
    if encoder not in (None, "static", *ENCODERS.plugins, *ALIASES):
        resolve(str(encoder))  # raises an error unless it is a folder or a name on the hub
    _print_title(name, config)
    for section in explain_settings(config):
        typer.echo(f"\n{section.title}")
        for setting in section.settings:
            typer.echo(_format_setting(setting))
    typer.echo("\nchange a setting with: spanwise train … --set SECTION.KEY=VALUE")


def _format_setting(setting: Setting) -> str:
    """One or more lines: key, value, the default if it differs, and the meaning, which other packages may omit."""
    default = "" if setting.default in (None, setting.value) else f" (default: {setting.default})"
    start = f"  {setting.key:<32} {setting.value}{default}"
    if not setting.meaning:
        return start
    indent = " " * MEANING_COLUMN
    if len(start) + 2 <= MEANING_COLUMN:
        return textwrap.fill(setting.meaning, WIDTH, initial_indent=f"{start:<{MEANING_COLUMN}}", subsequent_indent=indent)
    return f"{start}\n{textwrap.fill(setting.meaning, WIDTH, initial_indent=indent, subsequent_indent=indent)}"
