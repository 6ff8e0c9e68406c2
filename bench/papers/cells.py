"""Cells of a published table: one system trained on one corpus with one seed, and all numbers that tables show."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from spanwise.analysis.sample import correct_entities
from spanwise.analysis.span_sample import span_sample
from spanwise.analysis.vector_tables import measure_vectors
from spanwise.core.types import Corpus
from spanwise.corpora.splits import ensure_dev_split, find_split_files
from spanwise.evaluation import Bucket, TrainIndex, analyze_errors, bucket_scores
from spanwise.evaluation.differences import error_rates
from spanwise.heads.abilities import HasSpanVectors, find_ability
from spanwise.prediction.load import load_torch
from spanwise.prediction.scoring import predict_split
from spanwise.training.data import read_data
from spanwise.training.folds import cut_folds
from spanwise.training.run import train

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER.parent))
from sentence_groups import density, longest, score_groups  # noqa: E402

# Settings for encoders below 30 M parameters and short runs, instead of the published ones: automatic epochs and batch size.
SMALL = (
    "training.encoder_rate=1e-4", "training.head_rate=1e-3", "training.warmup=0.1", "training.schedule=linear",
    "training.clip=1.0", "training.epochs=null", "training.batch_size=null",
)  # fmt: skip
LENGTHS = {"1-4": 4, "5-9": 9, "10+": None}  # groups of Locate and Label, Table 3
LONGEST, DENSITY = (2, 5), (0.1, 0.3)  # highest values of the first two groups of sentences of GlobalPointer, Table 6


@dataclass(frozen=True)
class Table:
    """A table of a paper: systems on corpora, columns of numbers, and the published values."""

    name: str
    title: str
    corpora: tuple[str, ...]
    systems: Mapping[str, Mapping[str, Any]]
    columns: Mapping[str, str]  # title to a path in the record of a cell
    published: Mapping[str, Mapping[str, Sequence[float | Sequence[float] | None]]]  # a pair is a mean and its deviation
    seeds: tuple[int, ...] = (1,)
    note: str = ""
    scale: float = 100.0
    folds: bool = False
    base: str = ""  # the system to which the others are compared: their columns are differences with the same seed
    vectors: tuple[str, ...] = ()  # systems whose span vectors are measured
    corpus_set: Mapping[str, Sequence[str]] = field(default_factory=dict)  # settings by corpus
    small: Mapping[str, Sequence[str]] = field(default_factory=dict)  # settings by corpus for a small encoder, after SMALL
    shares: tuple[str, ...] = ()  # tables with systems of the same name, which are trained once; settings come from the first

    @classmethod
    def read(cls, name: str) -> Table:
        """Read the table NAME, such as ``sng:table2``."""
        path = FOLDER / f"{name.replace(':', '-')}.yaml"
        if not path.is_file():
            raise SystemExit(f"{name}: no such table; known: {', '.join(table_names())}")
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        for key in ("corpora", "seeds", "shares", "vectors"):
            if key in values:
                values[key] = tuple(values[key])
        if "shares" in values:
            first = cls.read(values["shares"][0])
            values = {"corpus_set": first.corpus_set, "small": first.small, **values}
        return cls(name=name, **values)

    def owner(self, system: str) -> Table:
        """The table under whose name a system is trained and stored: this one, or one that it shares systems with."""
        return next((table for table in map(Table.read, self.shares) if system in table.systems), self)

    def settings(self, cell: Cell) -> list[str]:
        """The settings of a cell's corpus and of its system, which take precedence."""
        return [*self.corpus_set.get(cell.corpus, ()), *self.systems[cell.system].get("set", ())]

    def small_settings(self, cell: Cell) -> list[str]:
        """The settings of a cell for a small encoder, which take precedence over the published ones."""
        if self.systems[cell.system].get("keep_rates"):
            return []
        return [*SMALL, *self.small.get(cell.corpus, ())]

    def cells(self, seeds: Sequence[int] = ()) -> list[Cell]:
        numbers = tuple(seeds) or (tuple(range(10)) if self.folds else self.seeds)
        return [Cell(*key) for key in product(self.corpora, self.systems, numbers)]


@dataclass(frozen=True)
class Cell:
    """One training. ``seed`` is the number of a fold in tables of folds."""

    corpus: str
    system: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.corpus}-{self.system}-{self.seed}".replace(" ", "_").replace("/", "_")


def table_names() -> list[str]:
    return sorted(path.stem.replace("-", ":", 1) for path in FOLDER.glob("*.yaml"))


def run_cell(
    table: Table, cell: Cell, data: Path, runs: Path, *,
    encoder: str | None, is_small: bool, overrides: Sequence[str], device: str,
) -> dict[str, Any]:  # fmt: skip
    """Train a cell, unless its run exists, and return its record; an interrupted run is resumed.

    If the labels of test are not public (CLUENER), the dev split is test, and training cuts another one from train.
    """
    table = table.owner(cell.system)
    system = table.systems[cell.system]
    folder = data / cell.corpus
    source: Path | Corpus = folder
    encoder = encoder if system.get("encoder", True) else None
    settings = [*table.settings(cell), *(table.small_settings(cell) if is_small else ()), *overrides]
    split = "test" if "test" in find_split_files(folder) else "dev"
    if table.folds:
        corpus = read_data(folder, None, print)
        source, _ = ensure_dev_split(dict(cut_folds(corpus, folder / "folds.json"))[cell.seed])
    elif split == "dev":
        corpus = read_data(folder, None, print)
        source = Corpus({"train": corpus["train"], "test": corpus["dev"]}, corpus.name)
    out = runs / table.name.replace(":", "-") / cell.name
    report = out / "run.json"
    if not report.is_file():
        train(
            source, out, recipe=system["recipe"], encoder=encoder, task=system.get("task"), overrides=settings, device=device,
            seed=1 if table.folds else cell.seed, resume=out.is_dir(),
        )  # fmt: skip
    record = json.loads(report.read_text(encoding="utf-8"))
    result = {"table": table.name, **vars(cell), "encoder": encoder, "settings": settings}
    result["scores"] = record["scores"]["test"]
    result |= {key: record.get(key) for key in ("epochs", "best_epoch", "seconds", "parameters")}
    return result if table.folds else result | measure(out, folder, split, device, with_vectors=cell.system in table.vectors)


def measure(run: Path, data: Path, split: str, device: str, *, with_vectors: bool) -> dict[str, Any]:
    """Predict a split and compute buckets, errors and, if requested, measures of span vectors."""
    predictor = load_torch(run, device)
    if predictor.model.needs_spans:
        return {"epsilon": None}  # given spans have any width
    head = predictor.model.head.prediction_head
    numbers: dict[str, Any] = {"epsilon": head.widest_span}
    result = predict_split(predictor, data, split=split)
    gold, predicted, train_index = result.gold, result.predicted, TrainIndex(result.train or ())
    numbers["unreachable"] = sum(map(head.count_unreachable, gold))

    def buckets(attribute: str, **options: Any) -> dict[str, float | None]:
        return f1_by_bucket(bucket_scores(gold, predicted, train_index, attribute=attribute, **options))

    numbers["buckets"] = {name: buckets(name) for name in ("eLen", "tLen", "eCon", "eDen", "nesting")}
    numbers["literal"] = {name: buckets(name, use_paper_definition=True) for name in ("eCon", "eDen")}
    groups = bucket_scores(gold, predicted, attribute="eLen", cuts=[cut for cut in LENGTHS.values() if cut])
    numbers["lengths"] = f1_by_bucket(groups, LENGTHS)
    single = bucket_scores(gold, predicted, attribute="eLen", cuts=list(range(1, 20)))
    numbers["length"] = f1_by_bucket(single, map(str, range(1, 21)))
    numbers["support"] = {name: bucket.score.support for name, bucket in zip(LENGTHS, groups, strict=True)}
    numbers["sentences"] = {
        f"{name}-{number}": {**score.to_json(), "sentences": count}
        for name, measure, cuts in (("L", longest, LONGEST), ("D", density, DENSITY))
        for number, (score, count) in enumerate(score_groups(gold, predicted, measure, cuts), 1)
    }
    numbers["errors"] = error_rates(analyze_errors(gold, predicted))
    if with_vectors:
        sample = span_sample(predictor.model, gold, correct_entities(gold, predicted), context=result.context)
        classifier = find_ability(predictor.model.head, HasSpanVectors)
        assert classifier is not None
        tables = measure_vectors(predictor.model, sample, classifier.class_weights).tables
        numbers["vectors"] = {f"{of}: {measure}": value for of, measure, value in tables["summary"].rows}
        numbers["overlaps"] = {row[0]: row[2] for row in tables["overlaps"].rows}
    return numbers


def f1_by_bucket(buckets: Sequence[Bucket], names: Iterable[str] = ()) -> dict[str, float | None]:
    """Return the F1 of each bucket under its name, or under ``names``; None if gold has no entities in the bucket."""
    names = tuple(names) or [bucket.name for bucket in buckets]
    return {name: b.score.f1 if b.score.support else None for name, b in zip(names, buckets, strict=True)}
