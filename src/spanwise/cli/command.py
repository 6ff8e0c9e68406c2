"""A command of this program: where a file's format cannot be told, its error names the option that says it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from spanwise.core.errors import UnknownFormatError


class Command(TyperCommand):
    """The library knows no options, and commands have different ones: ``--from``, or one for gold and one for predictions."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # of whichever click Typer has
        try:
            return super().invoke(ctx)
        except UnknownFormatError as error:
            raise error.but(option=self._format_option(Path(error.path), ctx.params)) from None

    def _format_option(self, path: Path, values: Mapping[str, Any]) -> str:
        options = {option for parameter in self.params for option in parameter.opts}
        if "--from" in options:
            return "--from"
        if "--gold-format" not in options:
            return ""
        gold = [values[name] for name in ("data", "gold", "train") if values.get(name) is not None]
        return "--gold-format" if any(path.is_relative_to(one) for one in gold) else "--pred-format"
