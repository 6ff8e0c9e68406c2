"""Seconds per epoch of training, without dev scores and checkpoints, and the interleaved speed of prediction.

    python bench/epochs.py --data genia --encoder minilm [--epochs 5] [--batch-size 32] [--json FILE] RECIPE...

Run it on an idle machine. The first epochs record CUDA graphs; the last is the steady state. Then the
models predict dev in turns, so that other load affects all of them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.recipes.resolve import resolve_config
from spanwise.training.data import read_training_corpus
from spanwise.training.loop import Trainer
from spanwise.training.progress import Progress

ROUNDS = 6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+", metavar="RECIPE")
    parser.add_argument("--data", required=True)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    corpus = read_training_corpus(options.data, None, lambda line: None)
    rows: dict[str, Any] = {}
    models: dict[str, Model] = {}
    for recipe in options.recipes:
        settings = {"epochs": options.epochs, "batch_size": options.batch_size}
        config = resolve_config(recipe, encoder=options.encoder, settings=settings, overrides=options.set)
        torch.manual_seed(config.training.seed)
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(Model.build(config, corpus), corpus, Path(folder), device=options.device, log=print)
            rows[recipe] = {"epochs": train_epochs(trainer)}
        models[recipe] = trainer.model.eval()
        print(recipe, rows[recipe]["epochs"], flush=True)
    for _ in range(ROUNDS):
        for recipe, model in models.items():
            started = time.perf_counter()
            list(predict(model, corpus["dev"]))
            rows[recipe].setdefault("predict", []).append(round(time.perf_counter() - started, 3))
    for recipe, row in rows.items():
        print(f"{recipe}: last epoch {row['epochs'][-1]:.2f} s, fastest prediction of dev {min(row['predict']):.3f} s")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def train_epochs(trainer: Trainer) -> list[float]:
    """The seconds of each epoch, until the device has finished."""
    stream, done, seconds = trainer._stream(0), 0, []
    with Progress(len(trainer.batches), 0, trainer.log, epochs=trainer.epochs, shows=False, slow_steps=None) as progress:
        for end in trainer.batches.ends:
            synchronize()
            started = time.perf_counter()
            trainer._train_epoch(stream, done, progress)
            synchronize()
            seconds.append(round(time.perf_counter() - started, 3))
            trainer.epoch, done = trainer.epoch + 1, end
    return seconds


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
