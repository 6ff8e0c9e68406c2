"""Cross-validation: one run for each fold of a corpus, tested on that fold alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from spanwise.core.errors import SpanwiseError
from spanwise.core.types import Corpus
from spanwise.corpora.splits import with_dev
from spanwise.evaluation.tasks import task_of
from spanwise.training.folder import write_json
from spanwise.training.run import read_aloud
from spanwise.training.together import Together


class Fold(TypedDict):
    """As a file of folds says it: ``[{"fold": 0, "test": ["id", …]}, …]``."""

    fold: int
    test: list[str]


def train_folds(
    data: str | Path | Corpus, out: Path, folds: Path, *, resume: bool = False, data_format: str | None = None, **options: Any
) -> dict[str, Any]:
    """One run per fold in ``out/fold-N``, and ``out/folds.json`` with mean and standard deviation of the test scores.

    Every fold is tested on once by a model that learned from all other sentences, whichever split they stand in; dev is cut
    from these. (SpERT's protocol for ADE has no dev and takes the last epoch. Its figures are the macro ones.)
    """
    together, log = Together(out, "folds", resume, options), options["log"]
    config = together.config()
    corpus = read_aloud(data, data_format, log)
    parts, runs = list(cut_folds(corpus, folds)), {}
    untested = sum(map(len, corpus.splits.values())) - sum(len(part["test"]) for _, part in parts)
    if untested:
        log(f"note: {untested:,} sentences are in no fold: they are learned from and never tested")
    for number, part in parts:
        whole, cut = with_dev(part)
        log(f"fold {number}: {cut or 'as given'}")
        runs[f"fold-{number}"] = config, whole
    found = [scores["test"] for scores in together.train(folds.absolute(), runs)]
    summary: dict[str, Any] = {"folds": [number for number, _ in parts], "scores": {}}
    for name in dict.fromkeys(chain.from_iterable(map(_figures, found))):
        values = [figures[name] for figures in map(_figures, found) if name in figures]  # a fold may have no relations
        deviation = stdev(values) if len(values) > 1 else 0.0
        summary["scores"][name] = {"mean": mean(values), "deviation": deviation, "folds": values}
        log(f"{name}: {mean(values):.4f} ± {deviation:.4f} over {len(values)} folds")
    write_json(out / "folds.json", summary)
    return summary


def _figures(scores: Mapping[str, Any]) -> dict[str, float]:
    """What is averaged over folds: macro and micro F1 of entities and, where there are any, of relations."""
    if "micro" not in scores:
        task = task_of(scores)
        return {task.figure: task.value(scores)}
    parts = {"entities": scores}
    if (relations := scores.get("relations")) is not None:
        parts |= {"relations strict": relations["strict"], "relations boundaries": relations["boundaries"]}
    return {f"{name} {average} F1": part[average]["f1"] for name, part in parts.items() for average in ("macro", "micro")}


def cut_folds(corpus: Corpus, path: Path) -> Iterator[tuple[int, Corpus]]:
    """The number of each fold and the corpus for it: its ids are ``test``, all other sentences of all splits ``train``."""
    sentences = list(chain.from_iterable(corpus.splits.values()))
    times = Counter(sentence.id for sentence in sentences)
    twice = next((name for name, count in times.items() if count > 1), None)
    if twice is not None:
        raise SpanwiseError(f"folds need an id of its own for every sentence, but {twice!r} occurs {times[twice]} times")
    folds = _read(path)
    tested: set[str] = set()
    for fold in folds:
        test = set(fold["test"])
        for wrong, why in ((test - times.keys(), "which the data does not have"), (test & tested, "which an earlier fold has")):
            if wrong:
                raise SpanwiseError(f"{path}: fold {fold['fold']} names {min(wrong)!r}, {why}")
        tested |= test
    for fold in folds:
        test = set(fold["test"])
        splits = {
            "train": tuple(sentence for sentence in sentences if sentence.id not in test),
            "test": tuple(sentence for sentence in sentences if sentence.id in test),
        }
        yield fold["fold"], Corpus(splits, corpus.name)


def _read(path: Path) -> list[Fold]:
    try:
        folds = TypeAdapter(list[Fold]).validate_python(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SpanwiseError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, ValidationError):
        raise SpanwiseError(f'{path}: expected folds as [{{"fold": 0, "test": ["id", …]}}, …]') from None
    if not folds or len({fold["fold"] for fold in folds}) < len(folds):
        raise SpanwiseError(f"{path}: expected at least one fold, and for each a number of its own")
    empty = next((fold["fold"] for fold in folds if not fold["test"]), None)
    if empty is not None:
        raise SpanwiseError(f"{path}: fold {empty} has no sentences, so nothing can be scored on it")
    return folds
