"""Train with several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spanwise.core.counting import counted
from spanwise.core.errors import SpanwiseError
from spanwise.core.percentages import percent
from spanwise.core.types import Corpus
from spanwise.evaluation.tasks import task_from_scores
from spanwise.files.writing import write_json
from spanwise.recipes.resolve import Choices
from spanwise.training.data import read_training_corpus
from spanwise.training.group import GroupTraining, mean_and_deviation
from spanwise.training.run import RunOptions


def train_seeds(
    data: str | Path | Corpus, out: Path, seeds: Sequence[int], choices: Choices, options: RunOptions
) -> dict[str, Any]:
    """Train one run per seed in ``out/seed-N``; write mean and standard deviation to ``out/seeds.json``."""
    if len(set(seeds)) < len(seeds):
        raise SpanwiseError(f"--seeds {','.join(map(str, seeds))}: a seed is repeated")
    if override := next((text for text in choices.overrides if text.startswith("training.seed=")), None):
        raise SpanwiseError(f"--seeds and --set {override} cannot be combined: all runs would have this seed; omit one of them")
    log = options.log
    if len(seeds) == 1:
        only = seeds[0]
        log(f"note: --seeds {only} is one run, with seed {only}; to train several, list their seeds, as in 1,2,3")
    with GroupTraining(out, "seeds", choices, options, [data]).open() as group:
        corpus = read_training_corpus(data, group.data_format, log)
        runs = group.train(seeds, {f"seed-{seed}": (group.config(seed=seed), corpus) for seed in seeds})

        summary: dict[str, Any] = {"seeds": list(seeds), "scores": {}}
        for split in runs[0]:
            task = task_from_scores(runs[0][split])
            values = [task.metric_value(scores[split]) for scores in runs]
            row: dict[str, Any] = {**mean_and_deviation(values), task.metric_key: values}
            summary["scores"][split] = row
            if all(scores[split].get("relations") for scores in runs):
                f1 = [scores[split]["relations"]["strict"]["micro"]["f1"] for scores in runs]
                row["relations"] = {**mean_and_deviation(f1), "f1": f1}
                log(f"{split}: relations F1 {_format(row['relations'], f1)} over {counted(len(seeds), 'seed')}")
            listed = ", ".join(map(percent, values))
            log(f"{split}: {task.metric} {_format(row, values)} over {counted(len(seeds), 'seed')} ({listed})")
        write_json(group.folder.summary_file("seeds"), summary)
        return summary


def _format(row: dict[str, Any], values: Sequence[float]) -> str:
    return f"{percent(row['mean'])} ± {percent(row['deviation'])}" if len(values) > 1 else percent(row["mean"])
