"""Train a grid of settings and choose the best on dev."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.percentages import percent
from spanwise.core.types import Corpus
from spanwise.evaluation.tasks import task_from_scores
from spanwise.files.writing import write_json
from spanwise.prediction.load import load_torch
from spanwise.recipes.resolve import Choices
from spanwise.runs.folder import RunFolder
from spanwise.training.data import read_training_corpus
from spanwise.training.group import GroupTraining, Scores
from spanwise.training.kept_types import mark_new_types
from spanwise.training.run import RunOptions
from spanwise.training.scoring import score_splits


def train_sweep(
    data: str | Path | Corpus, out: Path, sweep: Sequence[str], choices: Choices, options: RunOptions
) -> dict[str, Any]:
    """Train one run per point of the grid, without the test split; then score the best on dev on the test split.

    ``sweep`` has one ``section.key=a,b,c`` per axis. The summary is written to ``out/sweep.json``.
    """
    axes = [_parse_axis(text) for text in sweep]
    keys = [axis[0].partition("=")[0] for axis in axes]
    if repeated := next((key for key in keys if keys.count(key) > 1), None):
        raise SpanwiseError(f"--sweep {repeated}: given twice; pass all its values at once, as in --sweep {repeated}=a,b,c")
    grid = list(product(*axes))
    points = {"+".join(point).replace("/", "_"): point for point in grid}
    if len(points) < len(grid):
        raise SpanwiseError(f"--sweep {' '.join(sweep)}: two points have the same folder name (/ becomes _)")
    log = options.log
    with GroupTraining(out, "sweep", choices, replace(options, test=False), [data]).open() as group:
        configs = {name: group.config(*point) for name, point in points.items()}
        corpus = read_training_corpus(data, group.data_format, log)
        runs = group.train(sweep, {name: (config, corpus) for name, config in configs.items()})

        rows: list[dict[str, Any]] = []
        for (name, point), scores in zip(points.items(), runs, strict=True):
            task = task_from_scores(scores["dev"])
            metric, value = task.selection_metric(scores["dev"])
            rows.append({"settings": list(point), "folder": name, "dev": value})
        rows.sort(key=lambda row: -row["dev"])
        for row in rows:
            log(f"dev {metric} {percent(row['dev'])}  {' '.join(row['settings'])}")

        best = rows[0]
        scores = _score_test(RunFolder(out / best["folder"]), corpus, options.device)
        if "test" in scores:
            metric, value = task.selection_metric(scores["test"])
            log(f"best on dev: {' '.join(best['settings'])}; test {metric} {percent(value)}")
        summary = {"chosen": best["settings"], "test": scores.get("test"), "grid": rows}
        write_json(group.folder.summary_file("sweep"), summary)
        return summary


def _parse_axis(text: str) -> list[str]:
    """The overrides of one axis.

    >>> _parse_axis("head.dropout=0,0.2")
    ['head.dropout=0', 'head.dropout=0.2']
    """
    key, equals, rest = text.partition("=")
    values = [value.strip() for value in rest.split(",")]
    if not equals or "." not in key or not all(values):
        raise SpanwiseError(f"--sweep {text}: expected section.key=a,b,c")
    if len(set(values)) < len(values):
        raise SpanwiseError(f"--sweep {text}: a value is repeated")
    return [f"{key}={value}" for value in values]


def _score_test(run: RunFolder, corpus: Corpus, device: str) -> Scores:
    """Add the test scores to the report of a run; return all its scores."""
    scores, report = run.read_scores(), run.read_report()
    if "test" in corpus and "test" not in scores:
        corpus = mark_new_types(corpus) if "kept_types" in report else corpus
        scores |= score_splits(load_torch(run.path, device).model, corpus, ("test",))
        write_json(run.report_file, {**report, "scores": scores})
    return scores
