"""Several trainings at once: the same with other seeds, or a grid of settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from spanwise.errors import SpanwiseError
from spanwise.training.run import Run, train, write_json


def train_seeds(data: Path, out: Path, seeds: Sequence[int], *, resume: bool = False, **options: Any) -> dict[str, Any]:
    """One run per seed in ``out/seed-N``, and ``out/seeds.json`` with mean and standard deviation."""
    say = options["say"]
    if len(set(seeds)) < len(seeds):
        raise SpanwiseError(f"--seeds {','.join(map(str, seeds))}: a seed is named twice")
    runs = [_one(data, out / f"seed-{seed}", resume, seed=seed, **options) for seed in seeds]
    summary: dict[str, Any] = {"seeds": list(seeds), "scores": {}}
    for split in runs[0]:
        f1 = [scores[split]["micro"]["f1"] for scores in runs]
        deviation = stdev(f1) if len(f1) > 1 else 0.0
        summary["scores"][split] = {"mean": mean(f1), "deviation": deviation, "f1": f1}
        say(f"{split}: micro F1 {mean(f1):.4f} ± {deviation:.4f} over {len(seeds)} seeds ({', '.join(f'{x:.4f}' for x in f1)})")
    write_json(out / "seeds.json", summary)
    return summary


def train_sweep(
    data: Path, out: Path, sweep: Iterable[str], *, overrides: Iterable[str] = (), resume: bool = False, **options: Any
) -> dict[str, Any]:
    """One run per point of the grid in ``out``; dev scores for all, the test score only of the one that dev chooses."""
    say = options["say"]
    axes = [_axis(text) for text in sweep]
    rows = []
    for point in product(*axes):
        name = "+".join(setting.replace("/", "_") for setting in point)
        scores = _one(data, out / name, resume, overrides=(*overrides, *point), **options)
        rows.append({"settings": list(point), "folder": name, "dev": scores["dev"]["micro"]["f1"], "scores": scores})
    rows.sort(key=lambda row: -row["dev"])
    best = rows[0]
    for row in rows:
        say(f"dev F1 {row['dev']:.4f}  {' '.join(row['settings'])}")
    if "test" in best["scores"]:
        say(f"chosen on dev: {' '.join(best['settings'])}; test F1 {best['scores']['test']['micro']['f1']:.4f}")
    table = [{key: row[key] for key in ("settings", "folder", "dev")} for row in rows]
    summary = {"chosen": best["settings"], "test": best["scores"].get("test"), "grid": table}
    write_json(out / "sweep.json", summary)
    return summary


def _axis(text: str) -> list[str]:
    key, equals, values = text.partition("=")
    if not equals or not values or "." not in key:
        raise SpanwiseError(f"--sweep {text}: expected section.key=a,b,c")
    return [f"{key}={value}" for value in values.split(",")]


def _one(data: Path, folder: Path, resume: bool, **options: Any) -> dict[str, dict[str, Any]]:
    """Train one run, or take the scores of one that is finished already when resuming."""
    if resume and (folder / "run.json").is_file():
        import json

        scores: dict[str, dict[str, Any]] = json.loads((folder / "run.json").read_text(encoding="utf-8"))["scores"]
        return scores
    options["say"](f"== {folder.name}")
    run: Run = train(data, folder, resume=resume and folder.is_dir(), **options)
    return run.scores
