"""Cross-validation: one run per fold of a corpus, tested on that fold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from spanwise.core.counting import counted_phrase
from spanwise.core.errors import SpanwiseError
from spanwise.core.percentages import percent
from spanwise.core.types import Corpus
from spanwise.corpora.splits import ensure_dev_split
from spanwise.evaluation.tasks import task_from_scores
from spanwise.files.writing import write_json
from spanwise.recipes.resolve import Choices
from spanwise.training.data import read_data
from spanwise.training.group import GroupTraining, mean_and_deviation
from spanwise.training.run import RunOptions


class Fold(TypedDict):
    """One record of a file of folds: ``[{"fold": 0, "test": ["id", …]}, …]``."""

    fold: Annotated[int, Field(ge=0)]  # part of the name of a folder
    test: list[str]


def train_folds(
    data: str | Path | Corpus, out: Path, folds: Path, choices: Choices, options: RunOptions
) -> dict[str, Any]:  # fmt: skip
    """Train one run per fold in ``out/fold-N``; write mean and standard deviation of the test scores to ``out/folds.json``.

    Each fold is the test split of one run. All other sentences, of any split, are its training data,
    and dev is split off from them. (SpERT's protocol for ADE has no dev and takes the last epoch. It
    reports macro scores.)
    """
    log = options.log
    with GroupTraining(out, "folds", choices, options, [data, folds]).open() as group:
        config = group.config()
        corpus = read_data(data, group.data_format, log)
        parts, runs = list(cut_folds(corpus, folds)), {}
        untested = sum(map(len, corpus.splits.values())) - sum(len(part["test"]) for _, part in parts)
        if untested:
            log(f"note: {counted_phrase(untested, 'sentences that are in no fold, used for training and never tested')}")
        for number, part in parts:
            part_with_dev, note = ensure_dev_split(part)
            log(f"fold {number}: {note or 'unchanged splits'}")
            runs[f"fold-{number}"] = config, part_with_dev
        metrics = [_metrics(scores["test"]) for scores in group.train(folds.absolute(), runs)]

        summary: dict[str, Any] = {"folds": [number for number, _ in parts], "scores": {}}
        for name in dict.fromkeys(chain.from_iterable(metrics)):
            values = [row[name] for row in metrics if name in row]  # a fold may have no relations
            row: dict[str, Any] = {**mean_and_deviation(values), "folds": values}
            summary["scores"][name] = row
            log(f"{name}: {percent(row['mean'])} ± {percent(row['deviation'])} over {len(values)} folds")
        write_json(group.folder.summary_file("folds"), summary)
        return summary


def _metrics(scores: Mapping[str, Any]) -> dict[str, float]:
    """The numbers that are averaged over folds: macro and micro F1 of entities and relations, or the accuracy of typing."""
    if "micro" not in scores:
        task = task_from_scores(scores)
        return {task.metric: task.metric_value(scores)}
    parts = {"entities": scores}
    if (relations := scores.get("relations")) is not None:
        parts |= {"relations strict": relations["strict"], "relations boundaries": relations["boundaries"]}
    return {f"{name} {average} F1": part[average]["f1"] for name, part in parts.items() for average in ("macro", "micro")}


def cut_folds(corpus: Corpus, path: Path) -> Iterator[tuple[int, Corpus]]:
    """Yield the number and the corpus of each fold: its ids are ``test``, all other sentences ``train``."""
    sentences = list(chain.from_iterable(corpus.splits.values()))
    counts = Counter(sentence.id for sentence in sentences)
    repeated = next((name for name, count in counts.items() if count > 1), None)
    if repeated is not None:
        raise SpanwiseError(f"folds need unique sentence ids, but {repeated!r} occurs {counts[repeated]} times")
    folds = _read_folds(path)
    tested: set[str] = set()
    for fold in folds:
        test = set(fold["test"])
        for ids, problem in ((test - counts.keys(), "is not in the data"), (test & tested, "is already in an earlier fold")):
            if ids:
                raise SpanwiseError(f"{path}: fold {fold['fold']}: {min(ids)!r} {problem}")
        tested |= test
    for fold in folds:
        test = set(fold["test"])
        splits = {
            "train": tuple(sentence for sentence in sentences if sentence.id not in test),
            "test": tuple(sentence for sentence in sentences if sentence.id in test),
        }
        yield fold["fold"], Corpus(splits, corpus.name)


def _read_folds(path: Path) -> list[Fold]:
    try:
        folds = TypeAdapter(list[Fold]).validate_python(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SpanwiseError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, ValidationError):
        raise SpanwiseError(f'{path}: expected folds as [{{"fold": 0, "test": ["id", …]}}, …]') from None
    if not folds or len({fold["fold"] for fold in folds}) < len(folds):
        raise SpanwiseError(f"{path}: expected at least one fold, each with a different number")
    empty = next((fold["fold"] for fold in folds if not fold["test"]), None)
    if empty is not None:
        raise SpanwiseError(f"{path}: fold {empty} has no sentences; each fold needs at least one")
    return folds
