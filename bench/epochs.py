"""Seconds per epoch of training, milliseconds per step in steady state, and the interleaved speed of prediction.

    python bench/epochs.py --data genia --encoder minilm [--epochs 5] [--batch-size 32] [--json FILE] RECIPE...
    python bench/epochs.py --data genia --encoder all-mpnet-base-v2 --sentences 3000 --set training.precision=bf16 \\
        --set encoder.context=document --plain global-pointer

Run it on an idle machine. Epochs are without dev scores and checkpoints. The first ones record CUDA
graphs; the last is the steady state. Then the recipes train and predict in turns, so that other load
affects all of them: milliseconds per step are the median of the rounds, a ratio is the median of the
quotients of the same round, with quartiles in brackets. Steps include the transfer of a batch to the
device, but not building it.

On a GPU, the share of the device's peak arithmetic is the number of floating-point operations of a step,
counted by PyTorch's ``FlopCounterMode``, divided by its time and by the peak in TFLOP/s. The counter sees
products of matrices and attention, padding included. It does not see Triton kernels, so the counted steps
use none. The default peaks are those of an H200 without sparsity: 989 in bf16 and fp16, 495 in TF32;
``--peak`` gives another.

Trainings of fewer than 2,000 steps use no Triton kernels unless ``SPANWISE_KERNELS=1``.
``--set RECIPE:KEY=VALUE`` changes a setting of one recipe. ``--plain`` also measures without recorded steps.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.utils.flop_counter import FlopCounterMode

from spanwise.batching.batches import PackedBatch, TrainingBatches
from spanwise.core.types import Corpus
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.recipes.resolve import resolve_config
from spanwise.runtime.kernel_choice import SWITCH
from spanwise.training.data import read_training_corpus
from spanwise.training.loop import Trainer
from spanwise.training.progress import Progress

ROUNDS = 6
STEPS = 60  # per round
PEAKS = {"bf16": 989.0, "fp16": 989.0, "fp32": 495.0}  # TFLOP/s of an H200; fp32 is trained in TF32
PLAIN = " (plain)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+", metavar="RECIPE")
    parser.add_argument("--data", required=True)
    parser.add_argument("--sentences", type=int, help="of the training data; all by default")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=STEPS, help="per round")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], metavar="[RECIPE:]KEY=VALUE")
    parser.add_argument("--plain", action="store_true", help="also measure without recorded steps")
    parser.add_argument("--peak", type=float, metavar="TFLOPS", help="peak arithmetic of the device")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    corpus = read_training_corpus(options.data, None, lambda line: None)
    corpus = Corpus({**corpus.splits, "train": corpus["train"][: options.sentences]}, corpus.name)

    # Train all epochs of one recipe after the other.
    rows: dict[str, dict[str, Any]] = {}
    trainers: dict[str, Trainer] = {}
    for name in [recipe + suffix for recipe in options.recipes for suffix in ("", PLAIN)[: 1 + options.plain]]:
        trainers[name] = trainer = make_trainer(name, corpus, options)
        rows[name] = {"epochs": train_epochs(trainer), "steps_per_epoch": trainer.batches.ends[0]}
        print(name, rows[name]["epochs"], flush=True)

    # Train and predict in turns.
    for name, milliseconds in time_steps(trainers, options.steps, options.rounds).items():
        rows[name] |= {"step_ms": milliseconds, "ms_per_step": round(statistics.median(milliseconds), 3)}
    for name, trainer in trainers.items():
        trainer.model.eval()
        rows[name] |= measure_arithmetic(trainer, rows[name]["ms_per_step"], options.steps, options.peak)
    for name, seconds in time_predictions(trainers, corpus, options.rounds).items():
        rows[name]["predict"] = seconds
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def make_trainer(name: str, corpus: Corpus, options: argparse.Namespace) -> Trainer:
    """The trainer of a recipe; with the suffix of ``PLAIN``, one that records no steps."""
    recipe, settings = name.removesuffix(PLAIN), {"epochs": options.epochs, "batch_size": options.batch_size}
    config = resolve_config(recipe, encoder=options.encoder, settings=settings, overrides=overrides_of(recipe, options.set))
    torch.manual_seed(config.training.seed)
    fix_shapes = TrainingBatches.fix_shapes if recipe == name else lambda self: False
    # The folder is not used: nothing is saved.
    with patch.object(TrainingBatches, "fix_shapes", fix_shapes), tempfile.TemporaryDirectory() as folder:
        return Trainer(Model.build(config, corpus), corpus, Path(folder), device=options.device, log=print)


def overrides_of(recipe: str, settings: Iterable[str]) -> list[str]:
    """The settings of all recipes and those of this one.

    >>> overrides_of("spanwise", ["head.depth=1", "spanwise:encoder.masking=0", "biaffine:head.size=8"])
    ['head.depth=1', 'encoder.masking=0']
    """
    named = [(setting.partition("=")[0].rpartition(":")[0], setting) for setting in settings]
    return [setting.removeprefix(f"{name}:") for name, setting in named if name in ("", recipe)]


def train_epochs(trainer: Trainer) -> list[float]:
    """The seconds of each epoch, until the device has finished."""
    stream, done, seconds = trainer._stream(0), 0, []
    with Progress(len(trainer.batches), 0, trainer.log, epochs=trainer.epochs, shows=False, slow_steps=None) as progress:
        for end in trainer.batches.ends:
            seconds.append(timed(lambda done=done: trainer._train_epoch(stream, done, progress)))
            trainer.epoch, done = trainer.epoch + 1, end
    return [round(value, 3) for value in seconds]


def time_steps(trainers: Mapping[str, Trainer], steps: int, rounds: int) -> dict[str, list[float]]:
    """Milliseconds per step of each trainer and round, on its first batches."""
    batches = {name: first_batches(trainer, steps) for name, trainer in trainers.items()}

    def make(name: str) -> None:
        trainers[name].model.train()
        for batch in batches[name]:
            trainers[name].steps.make(batch)

    for name in trainers:  # the second time records shapes that no epoch has recorded
        make(name)
        make(name)
    times: dict[str, list[float]] = {name: [] for name in trainers}
    for _ in range(rounds):
        for name, milliseconds in times.items():
            milliseconds.append(round(1000 * timed(lambda name=name: make(name)) / len(batches[name]), 4))
    return times


def first_batches(trainer: Trainer, steps: int) -> Sequence[PackedBatch]:
    return [trainer.batches[step] for step in range(min(steps, len(trainer.batches)))]


def measure_arithmetic(trainer: Trainer, milliseconds: float, steps: int, peak: float | None) -> dict[str, float]:
    """Operations per step and their share of the device's peak; nothing on a CPU, unless its peak is given."""
    if peak is None and trainer.device.type == "cpu":
        return {}
    peak = peak or PEAKS[trainer.precision]
    batches = first_batches(trainer, steps)
    trainer.model.train()
    with patch.dict(os.environ, {SWITCH: "0"}), FlopCounterMode(display=False) as counter:
        for batch in batches:
            if trainer.steps.graphs is None:
                trainer.steps.make(batch)
            else:  # the counter does not see the operations of a recorded step
                trainer.steps._make_recordable(batch.to(trainer.device))
    trainer.model.eval()
    operations = counter.get_total_flops() / len(batches)
    share = operations / (milliseconds / 1000) / (peak * 1e12)
    return {"gflop_per_step": round(operations / 1e9, 3), "peak_tflops": peak, "share_of_peak": round(share, 5)}


def time_predictions(trainers: Mapping[str, Trainer], corpus: Corpus, rounds: int) -> dict[str, list[float]]:
    """Seconds in which each model predicts dev, in each round."""
    times: dict[str, list[float]] = {name: [] for name in trainers}
    for _ in range(rounds):
        for name, seconds in times.items():
            model = trainers[name].model
            seconds.append(round(timed(lambda model=model: list(predict(model, corpus["dev"]))), 3))
    return times


def print_table(rows: Mapping[str, Mapping[str, Any]]) -> None:
    first = next(iter(rows))
    for name, row in rows.items():
        ratios = [mine / other for mine, other in zip(row["step_ms"], rows[first]["step_ms"], strict=True)]
        parts = [f"{name}: last epoch {row['epochs'][-1]:.2f} s", f"step {row['ms_per_step']:.2f} ms"]
        if name != first:
            parts.append(f"{describe(ratios)} times {first}")
        if "share_of_peak" in row:
            share, peak = row["share_of_peak"], row["peak_tflops"]
            parts.append(f"{row['gflop_per_step']:.1f} GFLOP per step, {share:.1%} of {peak:g} TFLOP/s")
        print(", ".join([*parts, f"fastest prediction of dev {min(row['predict']):.3f} s"]))


def describe(values: Sequence[float]) -> str:
    """The median with quartiles.

    >>> describe([1.0, 2.0, 3.0])
    '2.00 [1.00, 3.00]'
    """
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def timed(function: Callable[[], Any]) -> float:
    """The seconds of a function, until the device has finished."""
    synchronize()
    started = time.perf_counter()
    function()
    synchronize()
    return time.perf_counter() - started


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
