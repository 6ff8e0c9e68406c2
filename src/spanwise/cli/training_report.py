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


def print_next_commands(
    run: Path, data: Path, data_format: str | None, scores: Mapping[str, Any], *, group: Path | None = None
) -> None:  # fmt: skip
    """Print the folder of a finished run and commands that use it, ready to copy; they read the data as training did.

    Without gold entities, there is nothing to evaluate or to analyse. The runs of a ``group`` are analysed together.
    """
    from spanwise.formats.registry import split_encoding

    typer.echo(f"run folder: {run}")

    format, encoding = split_encoding(data_format)
    folder = shlex.quote(str(run))
    words = [
        str(data), *(["--gold-format", format] if format else []), *(["--encoding", encoding] if encoding else []),
        *([] if "test" in scores else ["--split", "dev"]),
    ]  # fmt: skip
    gold = shlex.join(words)
    commands = [
        (f"spanwise predict {folder} FILE.txt", "entities in new texts"),
        (f"spanwise evaluate {folder} {gold} --find-threshold --save", "a better threshold"),
        (f"spanwise analyze {shlex.quote(str(group or run))} {gold} --out report", "which errors it makes, and why"),
        (f"spanwise serve {folder}", "try it in a browser"),
    ]
    gold_scores = scores.get("test") or scores["dev"]
    if "typing" in gold_scores:  # a model that types given spans has no threshold and needs spans
        commands = commands[2:3]
    elif not gold_scores["micro"]["support"]:
        commands = [commands[0], commands[-1]]
    for index, (command, purpose) in enumerate(commands):
        typer.echo(f"{'next: ' if index == 0 else '      '}{command}  # {purpose}")
