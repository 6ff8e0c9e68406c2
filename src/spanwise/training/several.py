"""Several trainings at once: the same with other seeds, or a grid of settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from spanwise.config import REPORT, Config, TrainingSettings, runs_in
from spanwise.corpora import fingerprints
from spanwise.device import is_alone
from spanwise.errors import SpanwiseError
from spanwise.evaluation.tasks import task_of
from spanwise.formats.files import read_json
from spanwise.inference.load import load_torch
from spanwise.training.checkpoint import Began
from spanwise.training.folder import check_several, write_json
from spanwise.training.run import final_scores, open_corpus, settled, train
from spanwise.types import Corpus

Scores = dict[str, dict[str, Any]]


def train_seeds(
    data: str | Path | Corpus, out: Path, seeds: Sequence[int], *, resume: bool = False, data_format: str | None = None,
    **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """One run per seed in ``out/seed-N``, and ``out/seeds.json`` with mean and standard deviation."""
    check_alone()
    say = options["say"]
    if len(set(seeds)) < len(seeds):
        raise SpanwiseError(f"--seeds {','.join(map(str, seeds))}: a seed is named twice")
    ready_several(out, "seeds", resume, say)
    corpus = open_corpus(data, data_format, say)
    runs = [one_run(corpus, out / f"seed-{seed}", resume, seed=seed, **options) for seed in seeds]
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
            say(f"{split}: relations F1 {spread['mean']:.4f} ± {spread['deviation']:.4f} over {len(seeds)} seeds")
        shown = ", ".join(f"{value:.4f}" for value in values)
        say(f"{split}: {task.figure} {mean(values):.4f} ± {deviation:.4f} over {len(seeds)} seeds ({shown})")
    write_json(out / "seeds.json", summary)
    return summary


def train_sweep(
    data: str | Path | Corpus, out: Path, sweep: Iterable[str], *, overrides: Iterable[str] = (), resume: bool = False,
    data_format: str | None = None, **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """One run per point of the grid in ``out``, scored on dev; the one that dev chooses is then scored on test."""
    check_alone()
    say, fixed = options["say"], tuple(overrides)
    points = list(product(*map(_axis, sweep)))
    for point in points:  # a mistake in the last point is found before the first is trained
        settled(options.get("recipe"), encoder=options.get("encoder"), task=options.get("task"), overrides=(*fixed, *point))
    ready_several(out, "sweep", resume, say)
    corpus = open_corpus(data, data_format, say)
    rows: list[dict[str, Any]] = []
    for point in points:
        name = "+".join(setting.replace("/", "_") for setting in point)
        scores = one_run(corpus, out / name, resume, overrides=(*fixed, *point), test=False, **options)
        task = task_of(scores["dev"])
        figure, value = task.choice(scores["dev"])
        rows.append({"settings": list(point), "folder": name, "dev": value})
    rows.sort(key=lambda row: -row["dev"])
    best = rows[0]
    for row in rows:
        say(f"dev {figure} {row['dev']:.4f}  {' '.join(row['settings'])}")
    scores = _with_test(out / best["folder"], corpus, options.get("device", "auto"))
    if "test" in scores:
        figure, value = task.choice(scores["test"])
        say(f"chosen on dev: {' '.join(best['settings'])}; test {figure} {value:.4f}")
    summary = {"chosen": best["settings"], "test": scores.get("test"), "grid": rows}
    write_json(out / "sweep.json", summary)
    return summary


def check_alone() -> None:
    if not is_alone():
        raise SpanwiseError("several processes train one run at a time: give them --seed, not --seeds, --folds or --sweep")


def ready_several(out: Path, kind: str, resume: bool, say: Callable[[str], None]) -> None:
    """Refuse a folder that holds something else; where there is nothing to go on with, say so."""
    check_several(out, kind, resume)
    if resume and not runs_in(out):
        say(f"nothing to resume in {out}: training from the start")


def _axis(text: str) -> list[str]:
    key, equals, values = text.partition("=")
    found = [value.strip() for value in values.split(",")]
    if not equals or "." not in key or not all(found):
        raise SpanwiseError(f"--sweep {text}: expected section.key=a,b,c")
    if len(set(found)) < len(found):
        raise SpanwiseError(f"--sweep {text}: a value is named twice")
    return [f"{key}={value}" for value in found]


def one_run(corpus: Corpus, folder: Path, resume: bool, **options: Any) -> Scores:
    """Train one run, or take the scores of one that is finished already when resuming."""
    if resume:
        record = read_json(folder / REPORT) if (folder / REPORT).is_file() else None
        began = Began.read(folder) if record is None else Began.of(record, folder / REPORT, "asked")
        if began is not None:  # all runs must be what would be trained now: a run that is to go on says nothing of the others
            began.check(folder, _asked(options), fingerprints(corpus))
        if record is not None:
            return _scores(record, folder)
    options["say"](f"== {folder.name}")
    return train(corpus, folder, resume=resume and folder.is_dir(), **options).scores


def _asked(options: Mapping[str, Any]) -> Config:
    """The settings that the options of a training ask for."""
    chosen = {name: options[name] for name in ("encoder", "task", "overrides") if name in options}
    settings = {name: value for name, value in options.items() if name in TrainingSettings.model_fields}
    return settled(options.get("recipe"), settings=settings, **chosen)


def _scores(record: Mapping[str, Any], folder: Path) -> Scores:
    try:
        return {split: dict(scores) for split, scores in record["scores"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SpanwiseError(f"{folder / REPORT}: cannot be read: has no scores ({error!r})") from None


def _with_test(folder: Path, corpus: Corpus, device: str) -> Scores:
    """The scores of the run that was chosen, that of test among them from now on."""
    record = read_json(folder / REPORT)
    scores = _scores(record, folder)
    if "test" in corpus and "test" not in scores:
        scores |= final_scores(load_torch(folder, device).model, corpus, ("test",))
        write_json(folder / REPORT, {**record, "scores": scores})
    return scores
