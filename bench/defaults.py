"""Compare training without any option with hand-picked recipes, on small samples of corpora.

    python bench/defaults.py train conll04 ncbi_disease litbank --data DATA --sizes 20 100 500 --seeds 1 2 3 --json FILE
    python bench/defaults.py table FILE [FILE …]

``default`` is ``spanwise train SAMPLE --out RUN``; the other recipes get the same automatic epochs, batches and patience.
A sample has the given number of training sentences, drawn with the seed, and no dev split: training takes dev from it,
as for a user with so much data. All are scored on the whole test split. A size of 0 means all sentences, with the corpus'
own dev split.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from spanwise.core.types import Corpus
from spanwise.corpora.splits import read_corpus

DEFAULT = "default"
RECIPES = (DEFAULT, "spanner", "global-pointer", "biaffine", "deep-span-pruned", "locate-label", "grid")
MAX_LOSS = 0.5  # points of F1 below the best recipe


def draw_sample(corpus: Corpus, size: int, seed: int) -> Corpus:
    """Draw training sentences, at least one of them with entities; test stays whole, dev is dropped."""
    if not size:
        return corpus
    random = Random(seed)
    while True:
        train = random.sample(list(corpus["train"]), min(size, len(corpus["train"])))
        if any(sentence.entities for sentence in train):
            return Corpus({"train": tuple(train), "test": corpus["test"]}, corpus.name)


def run(corpus: Corpus, recipe: str, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train on a sample and score test."""
    from spanwise.training.run import train

    folder = Path(tempfile.mkdtemp(prefix="defaults-", dir=arguments.work))
    start = time.perf_counter()
    try:
        trained = train(
            corpus, folder / "run", recipe=None if recipe == DEFAULT else recipe, encoder=arguments.encoder, seed=seed,
            epochs=arguments.epochs, overrides=arguments.set, device=arguments.device, log=lambda line: None,
        )  # fmt: skip
        report = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))
    finally:
        shutil.rmtree(folder)
    return {
        "f1": trained.scores["test"]["micro"]["f1"], "dev_f1": trained.scores["dev"]["micro"]["f1"],
        "epochs": report["epochs"], "best_epoch": report["best_epoch"], "seconds": round(time.perf_counter() - start, 1),
    }  # fmt: skip


def train_all(arguments: argparse.Namespace) -> None:
    rows: list[dict[str, Any]] = []
    for name in arguments.corpora:
        corpus = read_corpus(arguments.data / name)
        for size in arguments.sizes:
            for seed in arguments.seeds:
                sample = draw_sample(corpus, size, seed)
                for recipe in arguments.recipes:
                    row = {"corpus": name, "size": size, "recipe": recipe, "seed": seed, **run(sample, recipe, seed, arguments)}
                    sys.stdout.write(f"{json.dumps(row)}\n")
                    sys.stdout.flush()
                    rows.append(row)
                    arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Format the mean test F1 by corpus and size as Markdown, with the distance of the default to the best other recipe."""
    scores: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        scores[row["corpus"], row["size"]][row["recipe"]].append(100 * row["f1"])
    recipes = sorted({row["recipe"] for row in rows}, key=lambda name: RECIPES.index(name) if name in RECIPES else len(RECIPES))
    lines = [f"| corpus | sentences | {' | '.join(recipes)} | default minus best |", "|---" * (len(recipes) + 3) + "|"]
    for (corpus, size), by_recipe in sorted(scores.items()):
        means = {recipe: mean(values) for recipe, values in by_recipe.items()}
        others = [value for recipe, value in means.items() if recipe != DEFAULT]
        difference = means[DEFAULT] - max(others) if DEFAULT in means and others else None
        shown = "" if difference is None else f"{difference:+.1f}" if difference >= -MAX_LOSS else f"**{difference:+.1f}**"
        cells = " | ".join(f"{means[recipe]:.1f}" if recipe in means else "" for recipe in recipes)
        lines.append(f"| {corpus} | {size or 'all'} | {cells} | {shown} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train")
    training.add_argument("corpora", nargs="+", help="folders in DATA")
    training.add_argument("--data", type=Path, required=True)
    training.add_argument("--sizes", type=int, nargs="+", default=[20, 100, 500])
    training.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    training.add_argument("--recipes", nargs="+", default=RECIPES)
    training.add_argument("--encoder", help="for all recipes; by default as `spanwise train` chooses it")
    training.add_argument("--epochs", type=int, help="instead of automatic epochs, to try the script")
    training.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    training.add_argument("--device", default="auto")
    training.add_argument("--work", type=Path, help="folder for runs, which are removed")
    training.add_argument("--json", type=Path, required=True)
    tables = commands.add_parser("table")
    tables.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "train":
        train_all(arguments)
    else:
        rows = [row for file in arguments.files for row in json.loads(file.read_text(encoding="utf-8"))]
        sys.stdout.write("\n".join(table(rows)) + "\n")


if __name__ == "__main__":
    main()
