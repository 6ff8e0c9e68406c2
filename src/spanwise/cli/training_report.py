"""Print the scores of a finished run."""

from __future__ import annotations

from typing import Any

import typer


def print_scores(scores: dict[str, dict[str, Any]]) -> None:
    """Print one or two lines per split."""
    from spanwise.evaluation.tasks import task_from_scores

    for split, values in scores.items():
        first, *more = task_from_scores(values).format_scores(values)
        for line in (f"{split}: {first}", *(f"{split} {line}" for line in more)):
            typer.echo(line)
