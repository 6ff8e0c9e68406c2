"""Compare the rows of a table (``bench/table.py``, rows with ``keep``): paired tests, and F1 by groups of entities.

    python bench/compare.py table.json --data DATA --pairs ncbi-spanner:ncbi-bl-spanner … [--groups eLen tLen eDen eCon]

Runs are paired by seed; sentences are resampled for all of them together. Groups are the cut-offs of Table 5 of Bundling
Learning, and four of equal count for the density, whose published cut-offs leave nearly everything in one group.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from spanwise.corpora import open_splits
from spanwise.evaluation import TrainIndex, bucketed, compare
from spanwise.types import Entity, Sentence


def outputs(records: list[dict[str, Any]], name: str, gold: list[Sentence]) -> list[list[Sentence]]:
    """What the runs of a row found, in the order of their seeds."""
    runs = sorted((record for record in records if record["name"] == name), key=lambda record: record["seed"])
    if not runs or any("predicted" not in run for run in runs):
        raise SystemExit(f"{name}: no runs with kept predictions in the table")
    return [
        [
            replace(
                sentence, entities=tuple(Entity(kind, ((start, end),)) for kind, start, end in found), relations=(), links=()
            )
            for sentence, found in zip(gold, run["predicted"], strict=True)
        ]
        for run in runs
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="the folder of corpora")
    parser.add_argument("--pairs", nargs="*", default=[], metavar="ONE:OTHER")
    parser.add_argument("--groups", nargs="*", default=[], metavar="ATTRIBUTE")
    arguments = parser.parse_args()
    records = json.loads(arguments.table.read_text())
    corpora = {record["name"]: record["corpus"] for record in records}
    names = list(dict.fromkeys(name for pair in arguments.pairs for name in pair.split(":")))
    splits = {corpus: open_splits(arguments.data / corpus) for corpus in {corpora[name] for name in names}}
    gold = {corpus: list(streams["test"]) for corpus, streams in splits.items()}
    found = {name: outputs(records, name, gold[corpora[name]]) for name in names}
    for pair in arguments.pairs:
        one, other = pair.split(":")
        result = compare(gold[corpora[one]], found[one], found[other])
        print(f"{one} - {other}: {json.dumps(result.to_json())}")
    index = {corpus: TrainIndex(streams["train"]) for corpus, streams in splits.items()} if arguments.groups else {}
    for attribute in arguments.groups:
        cuts = 4 if attribute == "eDen" else None
        for name in names:
            corpus = corpora[name]
            runs = [bucketed(gold[corpus], run, index[corpus], attribute=attribute, cuts=cuts) for run in found[name]]
            row = [
                f"{buckets[0].name} {100 * mean(bucket.score.f1 for bucket in buckets):.2f} ({buckets[0].score.support})"
                for buckets in zip(*runs, strict=True)
            ]
            print(f"{attribute:6} {name:24} {'  '.join(row)}")


if __name__ == "__main__":
    main()
