"""Print the scores of a finished run, and commands to try next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer


def print_scores(scores: dict[str, dict[str, Any]]) -> None:
    """Print one or two lines per split."""
    from spanwise.evaluation.tasks import task_from_scores

    for split, values in scores.items():
        first, *more = task_from_scores(values).format_scores(values)
        for line in (f"{split}: {first}", *(f"{split} {line}" for line in more)):
            typer.echo(line)


def print_next_commands(run: Path, data: Path, scores: Mapping[str, Any]) -> None:
    """Print commands that use a finished run, ready to copy."""
    folder, corpus = shlex.quote(str(run)), shlex.quote(str(data))
    split = "" if "test" in scores else " --split dev"
    commands = [
        (f"spanwise predict {folder} FILE.txt", "entities in new texts"),
        (f"spanwise evaluate {folder} {corpus}{split} --find-threshold --save", "a better threshold"),
        (f"spanwise analyze {folder} {corpus}{split} --out report", "which errors it makes, and why"),
        (f"spanwise serve {folder}", "try it in a browser"),
    ]
    if "typing" in next(iter(scores.values()), {}):  # a model that types given spans has no threshold and needs spans
        commands = commands[2:3]
    for index, (command, purpose) in enumerate(commands):
        typer.echo(f"{'next: ' if index == 0 else '      '}{command}  # {purpose}")
