"""How training went: the losses and dev scores of a run's epochs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spanwise.analysis.figures.losses import losses_figure
from spanwise.analysis.part import Part, Table
from spanwise.core.errors import SpanwiseError
from spanwise.evaluation.tasks import Task

METRICS = "metrics.jsonl"
NO_LOSSES = ("epoch", "step", "dev", "seconds", "dev_seconds")


def losses_part(run: Path, task: Task) -> Part | None:
    """From the metrics of a run folder; None where it has none, as an exported model has not."""
    path = run / METRICS
    if not path.is_file():
        return None
    try:
        rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        epochs = [int(row["epoch"]) for row in rows]
        names = list(dict.fromkeys(name for row in rows for name in row if name not in NO_LOSSES))
        losses = {name: [_number(row.get(name)) for row in rows] for name in names}
        scores = [task.best(row["dev"]) for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        raise SpanwiseError(f"{path}: these metrics cannot be read: {' '.join(str(error).split())}") from None
    if not rows:
        return None
    best = max(range(len(rows)), key=lambda at: (scores[at], -epochs[at]))
    figure = f"dev {task.figure}"
    table = Table(
        ("epoch", *names, figure),
        tuple((epoch, *(losses[name][at] for name in names), scores[at]) for at, epoch in enumerate(epochs)),
    )
    first, last = (losses["loss"][at] if "loss" in losses else None for at in (0, -1))
    text = f"{len(rows)} epochs; {figure} is best in epoch {epochs[best]}: {scores[best]:.4f}."
    if first is not None and last is not None:
        text += f" The training loss went from {first:.4g} to {last:.4g}."
    return Part("losses", "Training", text, {"epochs": table}, {"loss": lambda: losses_figure(epochs, losses, scores, figure)})


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
