"""Losses and dev scores of a run's epochs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spanwise.analysis.figures.losses import losses_figure
from spanwise.analysis.section import Plot, Section, Table
from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.percentages import percent
from spanwise.evaluation.tasks import Task
from spanwise.runs.folder import RunFolder

OTHER_KEYS = ("epoch", "step", "dev", "seconds", "dev_seconds")  # keys of the metrics file that are not losses


def training_section(run: Path, task: Task) -> Section | None:
    """Draw the metrics of a run folder; None if it has no metrics, like an exported model."""
    path = RunFolder(run).metrics_file
    if not path.is_file():
        return None
    try:
        rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        epochs = [int(row["epoch"]) for row in rows]
        names = list(dict.fromkeys(name for row in rows for name in row if name not in OTHER_KEYS))
        losses = {name: [_number(row.get(name)) for row in rows] for name in names}
        scores = [task.selection_score(row["dev"]) for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        raise SpanwiseError(f"{path}: cannot read the metrics: {' '.join(str(error).split())}") from None
    if not rows:
        return None
    best = max(range(len(rows)), key=lambda index: (scores[index], epochs[index]))  # of equal ones the latest, as training
    metric = f"dev {task.metric}"
    table = Table(
        ("epoch", *names, metric),
        tuple((epoch, *(losses[name][index] for name in names), scores[index]) for index, epoch in enumerate(epochs)),
        "Losses and dev scores by epoch",
        percentages=(metric,),
    )
    first, last = (losses["loss"][index] if "loss" in losses else None for index in (0, -1))
    text = f"The best {metric} of {counted(len(rows), 'epoch')} is {percent(scores[best])}, in epoch {epochs[best]}."
    if first is not None and last is not None:
        text += f" The training loss was {first:.4g} in the first epoch and {last:.4g} in the last."
    plot = Plot(
        lambda: losses_figure(epochs, losses, scores, metric),
        f"Top: training loss and its terms by epoch. Bottom: {metric} by epoch; the circle marks the best epoch.",
    )
    return Section("training", "Training", text, {"epochs": table}, {"loss": plot})


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
