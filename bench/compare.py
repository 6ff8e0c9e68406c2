"""Compare rows of a table (``bench/table.py``, rows with ``keep``) like ``spanwise compare``, per corpus.

    python bench/compare.py table.json --data DATA --rows ncbi-spanner ncbi-bl-spanner … [--buckets eLen,eDen:4] [--errors]

Several splits (``--splits dev test``) are pooled. Runs are paired by seed; sentences are resampled for
all of them together. Buckets have the cut-offs of Table 5 of Bundling Learning, or a number of buckets
of equal count, because the published cut-offs of the density leave nearly all entities in one bucket.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from spanwise.cli.compare import parse_buckets
from spanwise.core.types import Entity, Sentence
from spanwise.corpora.splits import open_splits
from spanwise.evaluation.comparison import compare_systems
from spanwise.evaluation.comparison_table import print_comparison


def outputs(records: list[dict[str, Any]], name: str, gold: list[Sentence], splits: list[str]) -> list[list[Sentence]]:
    """Return the predictions of the runs of a row, ordered by seed."""
    runs = sorted((record for record in records if record["name"] == name), key=lambda record: record["seed"])
    if not runs or any(split not in run.get("predicted", {}) for run in runs for split in splits):
        raise SystemExit(f"{name}: no runs in the table have predictions of {' and '.join(splits)}")
    return [
        [
            replace(
                sentence,
                entities=tuple(Entity(kind, ((start, end),)) for kind, start, end in predictions),
                relations=(),
                links=(),
            )
            for sentence, predictions in zip(
                gold, (predictions for split in splits for predictions in run["predicted"][split]), strict=True
            )
        ]
        for run in runs
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of corpora")
    parser.add_argument(
        "--rows", nargs="+", required=True, metavar="NAME", help="rows to compare; the first of each corpus is the baseline"
    )
    parser.add_argument("--splits", nargs="+", default=["test"], help="splits with predictions")
    parser.add_argument("--buckets", metavar="ATTRIBUTES")
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--json", type=Path, help="write the comparisons per corpus to this file")
    arguments = parser.parse_args()
    records = json.loads(arguments.table.read_text())
    corpora = {record["name"]: record["corpus"] for record in records}
    results = {}
    for corpus in dict.fromkeys(corpora[name] for name in arguments.rows):
        splits = open_splits(arguments.data / corpus)
        gold = [sentence for split in arguments.splits for sentence in splits[split]]
        systems = {name: outputs(records, name, gold, arguments.splits) for name in arguments.rows if corpora[name] == corpus}
        print(f"\n== {corpus}")
        result = compare_systems(gold, systems, splits["train"], buckets=parse_buckets(arguments.buckets))
        print_comparison(result, Console(), with_errors=arguments.errors)
        results[corpus] = result.to_json()
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
