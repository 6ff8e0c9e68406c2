"""The training loop: steps, epochs, dev scores, checkpoints. It does not know which head it trains."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedDataParallelKwargs, broadcast_object_list, gather_object
from torch import Tensor
from torch.utils.data import DataLoader

from spanwise.batching.batches import PackedBatch, TrainingBatches
from spanwise.core.types import Corpus
from spanwise.corpora.splits import fingerprints
from spanwise.files.writing import atomic_output
from spanwise.heads.base import Head
from spanwise.models.model import Model
from spanwise.runs.files import BEGAN
from spanwise.runtime.device import is_alone, wants_cuda
from spanwise.training.checkpoint import CHECKPOINTS, check_same, load_checkpoint, random_states, read_state, save_checkpoint
from spanwise.training.checks import why_nothing
from spanwise.training.dev import Dev
from spanwise.training.optimization import SMALL, make_optimizer, make_schedule
from spanwise.training.progress import Progress
from spanwise.training.trackers import flat
from spanwise.training.watch import Watch

METRICS = "metrics.jsonl"
WATCH = 64  # losses and gradients that are looked at together on a GPU


class Trainer:
    """Trains a model on ``corpus["train"]`` and keeps the weights that are best on ``corpus["dev"]`` in the run folder."""

    def __init__(
        self, model: Model, corpus: Corpus, folder: Path, *, device: str = "auto", trackers: Iterable[str] = (),
        log: Callable[[str], None] = print,
    ) -> None:  # fmt: skip
        self.model, self.corpus, self.folder, self.log = model, corpus, folder, log
        self.settings = model.config.training
        assert self.settings.batch_size is not None  # settled when the model was built
        on_cpu = not wants_cuda(device)
        self.precision = self._precision(on_cpu)
        if not on_cpu:
            torch.set_float32_matmul_precision("high")  # TF32: as good as float32 for this, and several times faster
        self.trackers = list(trackers)
        self.accelerator = _accelerator(on_cpu, self.precision, self.trackers, folder)
        self.device = self.accelerator.device
        everything = [sentence for split in corpus.splits.values() for sentence in split]
        train = [example for sentence in corpus["train"] if (example := model.head.training_example(sentence)) is not None]
        share = (self.accelerator.process_index, self.accelerator.num_processes)
        self.batches = TrainingBatches(
            model.encoder, model.head, train, model.encoder.prepare(train, everything),
            epochs=self.settings.epochs, batch_size=self.settings.batch_size, budget=self.settings.token_budget,
            seed=self.settings.seed, share=share,
        )  # fmt: skip
        self.dev = Dev(model, corpus["dev"], everything)
        self.is_joint = self.settings.accumulate > 1 or share[1] > 1  # several batches make one step
        heads = [part for part in model.head.modules() if isinstance(part, Head)]
        if not on_cpu and self.precision == "fp32" and not self.is_joint:
            model.encoder.record_steps()
            for head in heads:
                head.record_steps()
        model.to(self.device)
        self.learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        apart = [list(head.separately_clipped_parameters()) for head in heads]
        others = {id(parameter) for own in apart for parameter in own}
        together = [parameter for parameter in self.learning if id(parameter) not in others]
        self.clipped = [parameters for parameters in (together, *apart) if parameters]
        self.optimizer = make_optimizer(model, self.settings)
        updates = self._updates(len(self.batches))
        falls = self.settings.schedule == "linear"
        self.schedule = make_schedule(self.optimizer, updates, self.settings.warmup, falls=falls)
        self.wrapped, self.stepper = self.accelerator.prepare(model, self.optimizer)
        self.watch = Watch(self.batches, train, 1 if on_cpu else WATCH)
        self.epoch, self.best, self.best_epoch, self.improved, self.seconds = 0, -1.0, 0, 0, 0.0
        # What must stay the same to go on.
        self.identity = {"config": model.config.model_dump(mode="json"), "data": fingerprints(corpus)}
        self.metrics: list[dict[str, Any]] = []
        self.sums: dict[str, Tensor] = {}  # of the losses of this epoch's batches
        self._instances: Tensor | None = None

    def _precision(self, on_cpu: bool) -> str:
        if on_cpu:
            return "fp32"
        if self.settings.precision != "auto":
            return self.settings.precision
        # A small encoder is limited by launching kernels, and mixed precision only adds casts.
        size = sum(parameter.numel() for parameter in self.model.encoder.parameters())
        return "fp32" if size < SMALL else "bf16"

    def _updates(self, steps: int) -> int:
        """How many optimiser steps come of so many batches: an epoch's last batches make one too."""
        ends = [end for end in self.batches.ends if end <= steps]
        starts = [0, *ends[:-1]]
        return sum(math.ceil((end - start) / self.settings.accumulate) for start, end in zip(starts, ends, strict=True))

    @property
    def device_name(self) -> str:
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"

    @property
    def plan(self) -> str:
        """What is going to happen, in one line."""
        train, settings = self.corpus["train"], self.settings
        parameters = sum(parameter.numel() for parameter in self.model.parameters() if parameter.requires_grad)
        return (
            f"training {self.model.config.recipe} on {len(train):,} sentences, {len(self.model.labels.entities)} types: "
            f"{settings.epochs} epochs, {self._updates(len(self.batches)):,} steps, {parameters / 1e6:.1f} M weights, "
            f"{self.device_name}, {self.precision}, seed {settings.seed}"
        )

    def train(self, *, resume: bool = False) -> None:
        """All epochs, or what is left of them."""
        done = self._resume() if resume else 0
        if self.trackers:
            self.accelerator.init_trackers("spanwise", config=flat(self.model.config.model_dump()))
        is_main = self.accelerator.is_main_process
        if not done and is_main:
            self.model.save_frame(self.folder)  # weights are there when the first epoch has been scored
        stream = self._stream(done)
        with Progress(len(self.batches), done, self.log, shows=is_main) as progress:
            while self.epoch < self.settings.epochs and not self._is_stale():
                began = time.perf_counter()
                losses = self._epoch(stream, done, progress)
                done = self.batches.ends[self.epoch]
                self.epoch += 1
                seconds = time.perf_counter() - began
                self.seconds += seconds
                self._dev(losses, seconds, done, progress)

    def _stream(self, done: int) -> Iterator[PackedBatch]:
        """The batches from here on, built by worker processes where a GPU would wait for them."""
        on_gpu = self.device.type == "cuda"
        loader: DataLoader[PackedBatch] = DataLoader(
            self.batches, batch_size=None, sampler=range(done, len(self.batches)), generator=torch.Generator(),
            num_workers=2 if on_gpu else 0, prefetch_factor=8 if on_gpu else None,
        )  # fmt: skip
        return iter(loader)

    def _epoch(self, stream: Iterator[PackedBatch], done: int, progress: Progress) -> dict[str, float]:
        """The steps of an epoch that are not done yet; the means of its losses."""
        self.wrapped.train()
        end = self.batches.ends[self.epoch]
        start = self.batches.ends[self.epoch - 1] if self.epoch else 0
        for step in range(done, end):
            is_update = (step + 1 - start) % self.settings.accumulate == 0 or step + 1 == end
            losses = self.step(step, next(stream), is_update=is_update)
            for name, value in losses.items():
                self.sums[name] = self.sums[name] + value if name in self.sums else value
            every = self.settings.checkpoint_steps
            if every and is_update and step + 1 < end and self.schedule.last_epoch % every == 0:
                self._checkpoint(step + 1)
            progress.step(losses["loss"])
        self.watch.look()
        means = {name: float(value) / (end - start) for name, value in self.sums.items()}
        self.sums = {}
        return means

    def step(self, number: int, packed: PackedBatch, *, is_update: bool = True) -> dict[str, Tensor]:
        """The gradients of a batch and, unless more batches are to join it, the step they make; its losses."""
        losses = self._backward(packed)
        norm = self._update() if is_update else None
        self.watch.add(number, losses["loss"], norm)
        return losses

    def _backward(self, packed: PackedBatch) -> dict[str, Tensor]:
        """Gradients of a batch. Only detached losses leave this function: nothing of the batch's graph may outlive it."""
        batch = packed.to(self.device)
        losses: dict[str, Tensor] = self.wrapped(batch.inputs, batch.targets)
        instances = losses.pop("instances")
        if self.is_joint:
            # A sum over instances now, divided by all of them in _update: the mean that one larger batch would have. Where a
            # loss is joined of several means, each over instances of its own, it is that nearly.
            self.accelerator.backward(losses["loss"] * instances)
            self._instances = instances if self._instances is None else self._instances + instances
        else:
            self.accelerator.backward(losses["loss"])
        return {name: value.detach() for name, value in losses.items()}

    def _update(self) -> Tensor | None:
        """A step of the optimiser; the norm of its gradient, where that tells something."""
        if self._instances is not None:
            total = self.accelerator.reduce(self._instances, reduction="sum").clamp(min=1)
            for parameter in self.learning:
                if parameter.grad is not None:
                    parameter.grad.mul_(self.accelerator.num_processes / total)  # processes' gradients come averaged
            self._instances = None
        if self.precision == "fp16":
            self.accelerator.unscale_gradients()
        norms = [torch.nn.utils.clip_grad_norm_(own, self.settings.clip, foreach=True) for own in self.clipped]
        self.stepper.step()
        self.schedule.step()
        self.stepper.zero_grad(set_to_none=True)
        # With scaled gradients, steps that overflow are passed over, and their norms tell nothing.
        return None if self.precision == "fp16" else torch.stack(norms).max()

    def _dev(self, losses: dict[str, float], seconds: float, done: int, progress: Progress) -> None:
        began = time.perf_counter()
        dev, predicted = self.dev.scores()
        (dev,) = broadcast_object_list([dev])  # all processes go on with the same
        row = {
            "epoch": self.epoch, "step": done, **{name: round(value, 6) for name, value in losses.items()},
            "dev": dev,
            "seconds": round(seconds, 3), "dev_seconds": round(time.perf_counter() - began, 3),
        }  # fmt: skip
        self.metrics.append(row)
        figure = self.model.task.best(dev)
        is_kept = self._compare(figure)
        progress.epoch(row, self.model.task.epoch(dev), is_kept)
        if self.epoch == 1 and figure == 0:
            cause = why_nothing(self.dev.gold, predicted, self.model.head, self.settings.head_rate)
            self.log(f"dev {self.model.task.figure} is 0 after the first epoch: {cause}")
        if self.trackers:
            self.accelerator.log(flat({key: value for key, value in row.items() if key != "step"}), step=done)
        if self.accelerator.is_main_process:
            if is_kept:
                self.model.save_weights(self.folder)
            with atomic_output(self.folder / METRICS) as temporary:
                temporary.write_text("".join(json.dumps(row) + "\n" for row in self.metrics), encoding="utf-8")
        self._checkpoint(done)

    def _compare(self, figure: float) -> bool:
        """Whether this epoch's weights are kept: the first with the best dev score, or the last while nothing was right."""
        if figure > self.best:
            self.improved = self.epoch
        elif self.best > 0:
            return False
        self.best, self.best_epoch = figure, self.epoch
        return True

    def _is_stale(self) -> bool:
        patience = self.settings.patience
        return patience is not None and self.epoch - self.improved >= patience

    def _checkpoint(self, step: int) -> None:
        self.watch.look()  # what has gone bad is not kept
        random = gather_object([random_states()])
        if self.accelerator.is_main_process:
            scaler = self.accelerator.scaler
            state = {
                "epoch": self.epoch, "best": self.best, "best_epoch": self.best_epoch, "improved": self.improved,
                "metrics": self.metrics, "sums": {name: float(value) for name, value in self.sums.items()},
                "seconds": self.seconds, "scaler": scaler.state_dict() if scaler else None, **self.identity,
            }  # fmt: skip
            save_checkpoint(self.folder, step, self.model, self.optimizer, self.schedule, state, random)
        self.accelerator.wait_for_everyone()

    def _resume(self) -> int:
        state = read_state(self.folder)
        if state is None:
            self.log("no checkpoint to resume from: starting at the beginning")
            return 0
        check_same(self.folder, state, self.identity)
        load_checkpoint(self.folder, self.model, self.optimizer, self.schedule, self.accelerator.process_index)
        if state["scaler"] and self.accelerator.scaler:
            self.accelerator.scaler.load_state_dict(state["scaler"])
        self.epoch, self.best, self.best_epoch = state["epoch"], state["best"], state["best_epoch"]
        self.improved, self.metrics, self.seconds = state["improved"], state["metrics"], state["seconds"]
        self.sums = {name: torch.tensor(value, device=self.device) for name, value in state["sums"].items()}
        self.log(f"resuming behind step {state['step']:,} (epoch {self.epoch + 1})")
        return int(state["step"])

    def finish(self, scores: dict[str, Any]) -> None:
        """Nothing is left to resume: the checkpoints go."""
        if self.trackers:
            task = self.model.task
            final = {f"{split}_{task.key}": task.value(values) for split, values in scores.items()}
            self.accelerator.log(final)
            self.accelerator.end_training()
        if self.accelerator.is_main_process:
            shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
            (self.folder / BEGAN).unlink(missing_ok=True)


def _accelerator(on_cpu: bool, precision: str, trackers: list[str], folder: Path) -> Accelerator:
    # A training before this one in the same process may have had another precision or, being alone, another device.
    AcceleratorState._reset_state(reset_partial_state=is_alone())
    return Accelerator(
        cpu=on_cpu,
        mixed_precision="no" if precision == "fp32" else precision,
        log_with=trackers or None,
        project_dir=folder if trackers else None,
        # A batch may leave weights unused: spans of one word need no recurrent ones.
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
