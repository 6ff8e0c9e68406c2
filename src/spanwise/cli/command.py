"""Command class that adds the right format option to errors about undetected formats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from spanwise.core.errors import UnknownFormatError


class Command(TyperCommand):
    """A command whose format errors name ``--from``, ``--gold-format`` or ``--pred-format``."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # Typer's click or the installed one
        try:
            return super().invoke(ctx)
        except UnknownFormatError as error:
            raise error.with_changes(option=self._format_option(Path(error.path), ctx.params)) from None

    def _format_option(self, path: Path, values: Mapping[str, Any]) -> str:
        options = {option for parameter in self.params for option in parameter.opts}
        if "--from" in options:
            return "--from"
        if "--gold-format" not in options:
            return ""
        gold = [values[name] for name in ("data", "gold", "train") if values.get(name) is not None]
        return "--gold-format" if any(path.is_relative_to(source) for source in gold) else "--pred-format"
