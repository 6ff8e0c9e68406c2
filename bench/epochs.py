"""Seconds per epoch of training, milliseconds per step in steady state, and the interleaved speed of prediction.

    python bench/epochs.py --data genia --encoder minilm [--epochs 5] [--batch-size 32] [--json FILE] RECIPE...
    python bench/epochs.py --data genia --encoder all-mpnet-base-v2 --sentences 3000 --set training.precision=bf16 \\
        --set encoder.context=document --plain global-pointer

Run it on an idle machine. Epochs are without dev scores and checkpoints. The first ones record CUDA
graphs; the last is the steady state. Then the recipes train and predict in turns, so that other load
affects all of them: milliseconds per step are the median of the rounds, a ratio is the median of the
quotients of the same round, with quartiles in brackets. Steps include the transfer of a batch to the
device, but not building it. Predictions include tokenising. ``--json`` is written after every epoch and
every part, so an interruption loses only the part that it interrupts.

On a GPU, the share of the device's peak arithmetic is the number of floating-point operations of a step,
counted by PyTorch's ``FlopCounterMode``, divided by its time and by the peak in TFLOP/s. The counter sees
products of matrices and attention, padding included. It sees neither Triton kernels nor recorded parts of
a step, so the counted steps use none; this makes them slow, so batches of one shape are counted once.
The default peaks are those of an H200 without sparsity: 989 in bf16 and fp16, 495 in TF32; ``--peak``
gives another.

Trainings of fewer than 2,000 steps use no Triton kernels unless ``SPANWISE_KERNELS=1``.
``--set RECIPE:KEY=VALUE`` changes a setting of one recipe. ``--plain`` also measures without recorded steps.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch.utils.flop_counter import FlopCounterMode

from spanwise.batching.batches import PackedBatch, TrainingBatches
from spanwise.core.types import Corpus
from spanwise.files.writing import atomic_output
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
    measure(options, Report(options.json))


class Report:
    """The results of each recipe by name, and lines with the seconds since the start."""

    def __init__(self, file: Path | None) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.file, self.started = file, time.perf_counter()

    def add(self, name: str, results: Mapping[str, Any]) -> None:
        self.rows.setdefault(name, {}).update(results)

    def add_epoch(self, name: str, seconds: float) -> None:
        self.rows[name]["epochs"].append(seconds)
        self.say(f"{name}: epoch {len(self.rows[name]['epochs'])} in {seconds:.2f} s")

    def say(self, line: str) -> None:
        """Print a line and write the results so far."""
        print(f"[{time.perf_counter() - self.started:5.1f} s] {line}", flush=True)
        if self.file is not None:
            with atomic_output(self.file) as temporary:
                temporary.write_text(json.dumps(self.rows, indent=1), encoding="utf-8")


def measure(options: argparse.Namespace, report: Report) -> None:
    corpus = read_training_corpus(options.data, None, lambda line: None)
    corpus = Corpus({**corpus.splits, "train": corpus["train"][: options.sentences]}, corpus.name)
    report.say(f"read {len(corpus['train']):,} sentences")

    # Train all epochs of one recipe after the other.
    trainers: dict[str, Trainer] = {}
    for name in [recipe + suffix for recipe in options.recipes for suffix in ("", PLAIN)[: 1 + options.plain]]:
        trainers[name] = trainer = make_trainer(name, corpus, options)
        report.add(name, {"epochs": [], "steps_per_epoch": trainer.batches.ends[0]})
        report.say(f"{name}: built")
        train_epochs(trainer, partial(report.add_epoch, name))

    # Corpus, models and graphs are not searched for garbage while steps and predictions are timed.
    gc.collect()
    gc.freeze()
    try:
        measure_in_turns(trainers, corpus, options, report)
    finally:
        gc.unfreeze()


def measure_in_turns(trainers: Mapping[str, Trainer], corpus: Corpus, options: argparse.Namespace, report: Report) -> None:
    batches = {name: first_batches(trainer, options.steps) for name, trainer in trainers.items()}
    report.say("batches built")
    for name, milliseconds in time_steps(trainers, batches, options.rounds).items():
        report.add(name, {"step_ms": milliseconds, "ms_per_step": round(statistics.median(milliseconds), 3)})
    add_ratios(report.rows, "step_ms")
    report.say("steps timed")
    for name, seconds in time_predictions(trainers, corpus, options.rounds).items():
        report.add(name, {"predict": seconds})
    add_ratios(report.rows, "predict")
    report.say("predictions timed")
    for name in trainers:
        report.say(describe_row(name, report.rows))

    # Operations are counted last, because counting is slow.
    for name, trainer in trainers.items():
        peak = options.peak or (PEAKS[trainer.precision] if trainer.device.type == "cuda" else None)
        if peak is None or not (operations := count_operations(trainer, batches[name])):
            continue
        arithmetic = describe_arithmetic(operations, report.rows[name]["ms_per_step"], peak)
        report.add(name, arithmetic)
        share = f"{arithmetic['share_of_peak']:.1%} of {peak:g} TFLOP/s"
        report.say(f"{name}: {arithmetic['gflop_per_step']:.1f} GFLOP per step, {share}")


def make_trainer(name: str, corpus: Corpus, options: argparse.Namespace) -> Trainer:
    """The trainer of a recipe; with the suffix of ``PLAIN``, one that records no steps."""
    recipe, settings = name.removesuffix(PLAIN), {"epochs": options.epochs, "batch_size": options.batch_size}
    config = resolve_config(recipe, encoder=options.encoder, settings=settings, overrides=overrides_of(recipe, options.set))
    torch.manual_seed(config.training.seed)
    fix_shapes = TrainingBatches.fix_shapes if recipe == name else lambda self: False
    # The folder is not used: nothing is saved.
    with patch.object(TrainingBatches, "fix_shapes", fix_shapes), tempfile.TemporaryDirectory() as folder:
        return Trainer(Model.build(config, corpus), corpus, Path(folder), device=options.device, log=print, data={})


def overrides_of(recipe: str, settings: Iterable[str]) -> list[str]:
    """The settings of all recipes and those of this one.

    >>> overrides_of("spanwise", ["head.depth=1", "spanwise:encoder.masking=0", "biaffine:head.size=8"])
    ['head.depth=1', 'encoder.masking=0']
    """
    named = [(setting.partition("=")[0].rpartition(":")[0], setting) for setting in settings]
    return [setting.removeprefix(f"{name}:") for name, setting in named if name in ("", recipe)]


def train_epochs(trainer: Trainer, report: Callable[[float], None] = lambda seconds: None) -> list[float]:
    """The seconds of each epoch, until the device has finished; each is also reported at once."""
    stream, done, seconds = trainer._stream(0), 0, []
    with Progress(len(trainer.batches), 0, trainer.log, epochs=trainer.epochs, shows=False, slow_steps=None) as progress:
        for end in trainer.batches.ends:
            seconds.append(round(timed(lambda done=done: trainer._train_epoch(stream, done, progress)), 3))
            trainer.epoch, done = trainer.epoch + 1, end
            report(seconds[-1])
    return seconds


def first_batches(trainer: Trainer, steps: int) -> Sequence[PackedBatch]:
    return [trainer.batches[step] for step in range(min(steps, len(trainer.batches)))]


def time_steps(
    trainers: Mapping[str, Trainer], batches: Mapping[str, Sequence[PackedBatch]], rounds: int
) -> dict[str, list[float]]:
    """Milliseconds per step of each trainer and round, on batches that it has already seen."""

    def make(name: str) -> None:
        trainers[name].model.train()
        for batch in batches[name]:
            trainers[name].steps.make(batch)

    # The epochs have recorded all shapes but those of single batches; these are recorded now.
    times = in_turns({name: partial(make, name) for name in trainers}, rounds)
    return {name: [round(1000 * value / len(batches[name]), 4) for value in seconds] for name, seconds in times.items()}


def time_predictions(trainers: Mapping[str, Trainer], corpus: Corpus, rounds: int) -> dict[str, list[float]]:
    """Seconds in which each model predicts dev, in each round."""

    def run(model: Model) -> None:
        deque(predict(model.eval(), corpus["dev"]), maxlen=0)

    times = in_turns({name: partial(run, trainer.model) for name, trainer in trainers.items()}, rounds)
    return {name: [round(value, 4) for value in seconds] for name, seconds in times.items()}


def in_turns(functions: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """The seconds of each function in each round, after a round that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds + 1):
        for name, function in functions.items():
            seconds = timed(function)
            if number:
                times[name].append(seconds)
    return times


def add_ratios(rows: Mapping[str, dict[str, Any]], key: str) -> None:
    """Add the times of each recipe relative to those of the first: quartiles over the rounds."""
    first = next(iter(rows.values()))
    for row in rows.values():
        row[f"{key}_ratio"] = quartiles([mine / other for mine, other in zip(row[key], first[key], strict=True)])


def count_operations(trainer: Trainer, batches: Sequence[PackedBatch]) -> float:
    """Floating-point operations per step; 0 if the counter cannot see them, because only parts of a step are recorded."""
    steps, counts = trainer.steps, dict[Any, int]()
    if steps.records_encoder:
        return 0.0
    trainer.model.train()
    for batch in batches:
        if batch.key in counts:
            continue
        with patch.dict(os.environ, {SWITCH: "0"}), FlopCounterMode(display=False) as counter:
            if steps.graphs is None:
                steps.make(batch)
            else:  # the counter does not see the operations of a recorded step
                steps._make_recordable(batch.to(trainer.device))
        counts[batch.key] = counter.get_total_flops()
    trainer.model.eval()
    return statistics.mean(counts[batch.key] for batch in batches)


def describe_arithmetic(operations: float, milliseconds: float, peak: float) -> dict[str, float]:
    """Operations per step and their share of the peak in TFLOP/s.

    >>> describe_arithmetic(2e9, 4.0, 1.0)
    {'gflop_per_step': 2.0, 'peak_tflops': 1.0, 'share_of_peak': 0.5}
    """
    share = operations / (milliseconds / 1000) / (peak * 1e12)
    return {"gflop_per_step": round(operations / 1e9, 3), "peak_tflops": peak, "share_of_peak": round(share, 5)}


def describe_row(name: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    row, first = rows[name], next(iter(rows))
    steps, predictions = f"step {row['ms_per_step']:.2f} ms", f"fastest prediction of dev {min(row['predict']):.3f} s"
    if name != first:
        steps += f", {format_quartiles(row['step_ms_ratio'])} times {first}"
        predictions += f", {format_quartiles(row['predict_ratio'])} times {first}"
    return f"{name}: last epoch {row['epochs'][-1]:.2f} s; {steps}; {predictions}"


def quartiles(values: Sequence[float]) -> list[float]:
    """The lower quartile, the median and the upper quartile.

    >>> quartiles([1.0, 2.0, 3.0]), quartiles([5.0])
    ([1.0, 2.0, 3.0], [5.0, 5.0, 5.0])
    """
    return [round(value, 4) for value in (statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3)]


def format_quartiles(values: Sequence[float]) -> str:
    """The median with quartiles.

    >>> format_quartiles([1.0, 2.0, 3.0])
    '2.00 [1.00, 3.00]'
    """
    low, middle, high = values
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
