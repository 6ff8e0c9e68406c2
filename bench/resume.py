"""Whether an interrupted and resumed training ends with the same weights and scores, bit for bit.

    python bench/resume.py --data genia --encoder minilm [--sentences 320] [--epochs 3] [--json FILE] RECIPE...

Each recipe is trained three times on the first sentences of the data with ``--deterministic``: without an
interruption, once more, and stopped in the second epoch and resumed. ``--plain`` trains without
``--deterministic``: on a GPU the weights then differ. The exit code is 1 if any weights or scores do.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from epochs import overrides_of
from safetensors.torch import load_file

from spanwise.core.types import Corpus
from spanwise.training.data import read_training_corpus
from spanwise.training.run import train
from spanwise.training.steps import TrainingSteps

TIMES = ("seconds", "dev_seconds")


class Interrupted(BaseException):
    """Like a signal: no handler catches it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+", metavar="RECIPE")
    parser.add_argument("--data", required=True)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--sentences", type=int, default=320)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], metavar="[RECIPE:]KEY=VALUE")
    parser.add_argument("--plain", action="store_true", help="train without --deterministic")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    corpus = shorten(read_training_corpus(options.data, None, lambda line: None), options.sentences)
    rows: dict[str, Any] = {}
    for recipe in options.recipes:
        started = time.perf_counter()
        arguments = {
            "recipe": recipe, "encoder": options.encoder, "epochs": options.epochs, "batch_size": options.batch_size,
            "overrides": overrides_of(recipe, options.set), "device": options.device, "deterministic": not options.plain,
            "log": lambda line: None,
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            row = compare(corpus, Path(folder), arguments)
        rows[recipe] = {**row, "seconds": round(time.perf_counter() - started, 1)}
        print(recipe, json.dumps(rows[recipe]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    sys.exit(any(not row[way]["is_equal"] for row in rows.values() for way in ("repeated", "resumed")))


def shorten(corpus: Corpus, sentences: int) -> Corpus:
    """The first sentences of train, and a quarter as many of the other splits."""
    return Corpus({name: corpus[name][: sentences if name == "train" else sentences // 4] for name in corpus}, corpus.name)


def compare(corpus: Corpus, folder: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    """Train three times and compare the second and third time with the first."""
    train(corpus, folder / "whole", **arguments)
    train(corpus, folder / "repeated", **arguments)
    steps = train_until(corpus, folder / "resumed", arguments)
    train(corpus, folder / "resumed", resume=True, **arguments)
    ways = {way: differences(folder / "whole", folder / way) for way in ("repeated", "resumed")}
    report = json.loads((folder / "whole" / "run.json").read_text())
    return {"device": report["conditions"]["device"], "interrupted_after_steps": steps, **ways}


def train_until(corpus: Corpus, folder: Path, arguments: dict[str, Any]) -> int:
    """Train until the middle of the second epoch; return the number of steps."""
    make, steps, end = TrainingSteps.make, 0, -(-len(corpus["train"]) // arguments["batch_size"]) * 3 // 2

    def interrupted(self: TrainingSteps, *batch: Any, **options: Any) -> Any:
        nonlocal steps
        if steps == end:
            raise Interrupted
        steps += 1
        return make(self, *batch, **options)

    try:
        with patch.object(TrainingSteps, "make", interrupted):
            train(corpus, folder, **arguments)
    except Interrupted:
        return steps
    raise AssertionError("the training ended before the interruption")


def differences(first: Path, second: Path) -> dict[str, Any]:
    """How many weights of two runs differ and by how much at most, and whether metrics and scores are the same."""
    weights, others = load_file(first / "model.safetensors"), load_file(second / "model.safetensors")
    unequal = [name for name, tensor in weights.items() if not torch.equal(tensor, others[name])]
    largest = max(((weights[name].double() - others[name].double()).abs().max().item() for name in unequal), default=0.0)
    metrics, scores = (read(first) == read(second) for read in (read_metrics, read_scores))
    return {
        "is_equal": not unequal and metrics and scores, "unequal_tensors": len(unequal), "tensors": len(weights),
        "largest_difference": largest, "same_metrics": metrics, "same_scores": scores,
    }  # fmt: skip


def read_metrics(run: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


def read_scores(run: Path) -> Any:
    report = json.loads((run / "run.json").read_text())
    return report["scores"], report["calibration"]


if __name__ == "__main__":
    main()
