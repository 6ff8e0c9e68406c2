"""Several trainings at once: the same with other seeds, or a grid of settings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus
from spanwise.evaluation.tasks import task_of
from spanwise.files.reading import read_json
from spanwise.prediction.load import load_torch
from spanwise.runs.files import REPORT
from spanwise.training.folder import write_json
from spanwise.training.run import final_scores, open_corpus
from spanwise.training.together import Scores, Together, scores_in


def train_seeds(
    data: str | Path | Corpus, out: Path, seeds: Sequence[int], *, resume: bool = False, data_format: str | None = None,
    **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """One run per seed in ``out/seed-N``, and ``out/seeds.json`` with mean and standard deviation."""
    if len(set(seeds)) < len(seeds):
        raise SpanwiseError(f"--seeds {','.join(map(str, seeds))}: a seed is named twice")
    together, log = Together(out, "seeds", resume, options), options["log"]
    corpus = open_corpus(data, data_format, log)
    runs = together.train(seeds, {f"seed-{seed}": (together.config(seed=seed), corpus) for seed in seeds})
    summary: dict[str, Any] = {"seeds": list(seeds), "scores": {}}
    for split in runs[0]:
        task = task_of(runs[0][split])
        values = [task.value(scores[split]) for scores in runs]
        deviation = stdev(values) if len(values) > 1 else 0.0
        summary["scores"][split] = {"mean": mean(values), "deviation": deviation, task.key: values}
        if all(scores[split].get("relations") for scores in runs):
            f1 = [scores[split]["relations"]["strict"]["micro"]["f1"] for scores in runs]
            spread = {"mean": mean(f1), "deviation": stdev(f1) if len(f1) > 1 else 0.0, "f1": f1}
            summary["scores"][split]["relations"] = spread
            log(f"{split}: relations F1 {spread['mean']:.4f} ± {spread['deviation']:.4f} over {len(seeds)} seeds")
        shown = ", ".join(f"{value:.4f}" for value in values)
        log(f"{split}: {task.figure} {mean(values):.4f} ± {deviation:.4f} over {len(seeds)} seeds ({shown})")
    write_json(out / "seeds.json", summary)
    return summary


def train_sweep(
    data: str | Path | Corpus, out: Path, sweep: Sequence[str], *, resume: bool = False, data_format: str | None = None,
    **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """One run per point of the grid in ``out``, scored on dev; the one that dev chooses is then scored on test."""
    grid = list(product(*map(_axis, sweep)))
    points = {"+".join(point).replace("/", "_"): point for point in grid}
    if len(points) < len(grid):
        raise SpanwiseError(f"--sweep {' '.join(sweep)}: two points would have a folder of one name (/ becomes _ in it)")
    together, log = Together(out, "sweep", resume, options), options["log"]
    configs = {name: together.config(*point) for name, point in points.items()}
    corpus = open_corpus(data, data_format, log)
    found = together.train(sweep, {name: (config, corpus) for name, config in configs.items()}, test=False)
    rows: list[dict[str, Any]] = []
    for (name, point), scores in zip(points.items(), found, strict=True):
        task = task_of(scores["dev"])
        figure, value = task.choice(scores["dev"])
        rows.append({"settings": list(point), "folder": name, "dev": value})
    rows.sort(key=lambda row: -row["dev"])
    best = rows[0]
    for row in rows:
        log(f"dev {figure} {row['dev']:.4f}  {' '.join(row['settings'])}")
    scores = _with_test(out / best["folder"], corpus, options.get("device", "auto"))
    if "test" in scores:
        figure, value = task.choice(scores["test"])
        log(f"chosen on dev: {' '.join(best['settings'])}; test {figure} {value:.4f}")
    summary = {"chosen": best["settings"], "test": scores.get("test"), "grid": rows}
    write_json(out / "sweep.json", summary)
    return summary


def _axis(text: str) -> list[str]:
    key, equals, values = text.partition("=")
    found = [value.strip() for value in values.split(",")]
    if not equals or "." not in key or not all(found):
        raise SpanwiseError(f"--sweep {text}: expected section.key=a,b,c")
    if len(set(found)) < len(found):
        raise SpanwiseError(f"--sweep {text}: a value is named twice")
    return [f"{key}={value}" for value in found]


def _with_test(folder: Path, corpus: Corpus, device: str) -> Scores:
    """The scores of the run that was chosen, that of test among them from now on."""
    scores = scores_in(folder)
    if "test" in corpus and "test" not in scores:
        scores |= final_scores(load_torch(folder, device).model, corpus, ("test",))
        write_json(folder / REPORT, {**read_json(folder / REPORT), "scores": scores})
    return scores
