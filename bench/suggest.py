"""Measure how many sentences a strategy needs to reach 95 % of the F1 of a model that is trained on all of them.

    python bench/suggest.py run DATA/ncbi_disease both --seed 1 --encoder minilm --json FILE
    python bench/suggest.py table FILE [FILE …]

One ``run`` is one simulated annotation: a random start of 100 sentences, then 100 more in each round, chosen by a model that
is trained from the beginning on those before. It ends when test has reached the target: 95 % of the F1 of the same recipe
and seed with all training sentences. Parts of a curve can be measured in parallel (--parts, --start) and are put together in
the table.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from spanwise.core.types import Corpus
from spanwise.corpora.splits import read_corpus

SHARE = 0.95  # of the F1 with all sentences
SPLITS = ("dev", "test")


def sentences_needed(rounds: list[dict[str, Any]], split: str, target: float) -> int | None:
    """The first size whose F1 reaches the target; None if none does."""
    return next((row["sentences"] for row in rounds if row["f1"].get(split, -1.0) >= target), None)


def run(arguments: argparse.Namespace) -> None:
    from spanwise.active_learning.choosing import Criteria
    from spanwise.active_learning.simulate import Simulation
    from spanwise.recipes.resolve import Choices

    started = time.perf_counter()
    corpus = read_corpus(arguments.data)
    train = list(corpus["train"])
    if arguments.limit and arguments.limit < len(train):
        train = Random(0).sample(train, arguments.limit)
    scored = {split: corpus[split] for split in (("test",) if arguments.skip_dev else SPLITS)}
    corpus = Corpus({"train": tuple(train), **scored}, corpus.name)
    choices = Choices(arguments.recipe, arguments.encoder, None, tuple(arguments.set), {"seed": arguments.seed})
    criteria = Criteria(arguments.count, arguments.strategy, seed=arguments.seed)
    simulation = Simulation(
        corpus, choices.resolve(), criteria, start=arguments.start, steps=arguments.steps, device=arguments.device
    )
    result: dict[str, Any] = {
        "corpus": arguments.data.name, "pool": len(train), "strategy": arguments.strategy, "seed": arguments.seed,
        "recipe": arguments.recipe, "steps": arguments.steps, "all": None, "rounds": [],
    }  # fmt: skip

    def save() -> None:
        arguments.json.write_text(json.dumps(result) + "\n", encoding="utf-8")

    if arguments.parts != "rounds":
        result["all"] = simulation.run_whole().to_json()
        save()
    for row in simulation.run(arguments.max) if arguments.parts != "all" else ():
        result["rounds"].append(row.to_json() | {"seconds": round(time.perf_counter() - started, 1)})
        save()
        sys.stdout.write(f"{arguments.data.name} {arguments.strategy} {json.dumps(result['rounds'][-1])}\n")
        sys.stdout.flush()
        is_reached = result["all"] is not None and row.f1["test"] >= SHARE * result["all"]["f1"]["test"]
        if is_reached or time.perf_counter() - started > arguments.seconds:
            break


def merge(results: list[dict[str, Any]]) -> dict[tuple[str, str], dict[int, dict[str, int | None]]]:
    """The sentences that each strategy needs, by corpus and strategy, seed and split."""
    whole = {(result["corpus"], result["seed"]): result["all"]["f1"] for result in results if result["all"]}
    rounds: dict[tuple[str, str], dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        if result["rounds"]:
            rounds[result["corpus"], result["strategy"]][result["seed"]] += result["rounds"]
    needed: dict[tuple[str, str], dict[int, dict[str, int | None]]] = defaultdict(dict)
    for (corpus, strategy), seeds in rounds.items():
        for seed, rows in seeds.items():
            rows.sort(key=lambda row: row["sentences"])
            targets = {split: SHARE * f1 for split, f1 in whole[corpus, seed].items()}
            needed[corpus, strategy][seed] = {
                split: sentences_needed(rows, split, targets[split]) if split in targets else None for split in SPLITS
            }
    return needed


def table(results: list[dict[str, Any]]) -> list[str]:
    """Format the mean number of sentences by corpus and strategy as Markdown, next to random choice with the same seeds."""
    needed = merge(results)
    lines = ["| corpus | strategy | seeds | sentences (dev) | of random | sentences (test) | of random |", "|---" * 7 + "|"]
    for (corpus, strategy), seeds in sorted(needed.items()):
        cells = []
        for split in SPLITS:
            ours = [seeds[seed][split] for seed in sorted(seeds)]
            others = [needed[corpus, "random"].get(seed, {}).get(split) for seed in sorted(seeds)]
            value, other = (None if None in counts else mean(count for count in counts if count) for counts in (ours, others))
            cells += ["not reached" if value is None else f"{value:,.0f}", f"{value / other:.0%}" if value and other else ""]
        lines.append(f"| {corpus} | {strategy} | {', '.join(map(str, sorted(seeds)))} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("data", type=Path, help="folder with train, dev and test")
    running.add_argument("strategy", help="both, uncertainty, diversity or random")
    running.add_argument("--seed", type=int, default=1)
    running.add_argument("--count", type=int, default=100, help="sentences per round")
    running.add_argument("--start", type=int, default=100, help="sentences of the first round")
    running.add_argument("--max", type=int, help="end at this many sentences")
    running.add_argument("--parts", choices=("both", "all", "rounds"), default="both", help="train on all sentences, or rounds")
    running.add_argument("--limit", type=int, help="use only this many random training sentences as the pool")
    running.add_argument("--skip-dev", action="store_true", help="score only test, which is faster")
    running.add_argument("--recipe", default="global-pointer")
    running.add_argument("--encoder", default="minilm")
    running.add_argument("--steps", type=int, default=500, help="optimiser steps of each training, at least 6 epochs")
    running.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    running.add_argument("--device", default="auto")
    running.add_argument("--seconds", type=float, default=float("inf"), help="start no round after this time")
    running.add_argument("--json", type=Path, required=True)
    tables = commands.add_parser("table")
    tables.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments)
    else:
        results = [json.loads(file.read_text(encoding="utf-8")) for file in arguments.files]
        sys.stdout.write("\n".join(table(results)) + "\n")


if __name__ == "__main__":
    main()
