"""The scores a training prints when it ends."""

from __future__ import annotations

from typing import Any

import typer


def print_scores(scores: dict[str, dict[str, Any]]) -> None:
    """A line or two a split."""
    from spanwise.evaluation.tasks import task_of

    for split, values in scores.items():
        first, *more = task_of(values).lines(values)
        for line in (f"{split}: {first}", *(f"{split} {line}" for line in more)):
            typer.echo(line)
