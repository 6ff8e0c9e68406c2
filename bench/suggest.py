"""Measure how many sentences a strategy needs to reach 95 % of the F1 of a model that is trained on all of them.

    python bench/suggest.py run DATA/ncbi_disease both --seed 1 --encoder minilm --json FILE
    python bench/suggest.py table FILE [FILE …]

One ``run`` is one simulated annotation: a random start of 100 sentences, then 100 more in each round, chosen by a model that
is trained from the beginning on those before. It ends when dev and test have reached the target. The target is 95 % of the
F1 of the same recipe and seed with all training sentences.
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
    return next((row["sentences"] for row in rounds if row["f1"][split] >= target), None)


def run(arguments: argparse.Namespace) -> None:
    from spanwise.active_learning.choosing import Criteria
    from spanwise.active_learning.simulate import Simulation
    from spanwise.recipes.resolve import Choices

    started = time.perf_counter()
    corpus = read_corpus(arguments.data)
    train = list(corpus["train"])
    if arguments.limit and arguments.limit < len(train):
        train = Random(0).sample(train, arguments.limit)
    corpus = Corpus({"train": tuple(train), "dev": corpus["dev"], "test": corpus["test"]}, corpus.name)
    choices = Choices(arguments.recipe, arguments.encoder, None, tuple(arguments.set), {"seed": arguments.seed})
    name, _, weight = arguments.strategy.partition("+")
    criteria = Criteria(arguments.count, name, seed=arguments.seed, entity_weight=float(weight or 0))
    simulation = Simulation(
        corpus, choices.resolve(), criteria, start=arguments.start, steps=arguments.steps, device=arguments.device
    )
    whole = simulation.run_whole().to_json()
    targets = {split: SHARE * whole["f1"][split] for split in SPLITS}
    result: dict[str, Any] = {
        "corpus": arguments.data.name, "pool": len(train), "strategy": arguments.strategy, "seed": arguments.seed,
        "recipe": arguments.recipe, "steps": arguments.steps, "all": whole, "targets": targets, "rounds": [],
    }  # fmt: skip
    for row in simulation.run():
        result["rounds"].append(row.to_json() | {"seconds": round(time.perf_counter() - started, 1)})
        result["needed"] = {split: sentences_needed(result["rounds"], split, targets[split]) for split in SPLITS}
        arguments.json.write_text(json.dumps(result) + "\n", encoding="utf-8")
        sys.stdout.write(f"{arguments.data.name} {arguments.strategy} {json.dumps(result['rounds'][-1])}\n")
        sys.stdout.flush()
        if all(result["needed"].values()) or time.perf_counter() - started > arguments.seconds:
            break


def table(results: list[dict[str, Any]]) -> list[str]:
    """Format the mean number of sentences by corpus and strategy as Markdown, next to random choice."""
    needed: dict[tuple[str, str], dict[str, dict[int, int | None]]] = defaultdict(lambda: defaultdict(dict))
    for result in results:
        for split in SPLITS:
            # Several files of one seed are parts of a curve that were measured in parallel (--start).
            seeds, count = needed[result["corpus"], result["strategy"]][split], result["needed"][split]
            known = [value for value in (seeds.get(result["seed"]), count) if value is not None]
            seeds[result["seed"]] = min(known, default=None)
    lines = ["| corpus | strategy | seeds | sentences (dev) | of random | sentences (test) | of random |", "|---" * 7 + "|"]
    for (corpus, strategy), splits in sorted(needed.items()):
        cells = []
        for split in SPLITS:
            rows, others = splits[split], needed[corpus, "random"][split]
            is_known = all(value is not None for value in rows.values())
            value = mean(count for count in rows.values() if count is not None) if is_known else None
            baseline = [others.get(seed) for seed in rows]
            share = "" if value is None or None in baseline else f"{100 * value / mean(filter(None, baseline)):.0f} %"
            cells += ["not reached" if value is None else f"{value:,.0f}", share]
        lines.append(f"| {corpus} | {strategy} | {len(splits['test'])} | {' | '.join(cells)} |")
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
    running.add_argument("--limit", type=int, help="use only this many random training sentences as the pool")
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
