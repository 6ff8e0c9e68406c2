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
from torch import Tensor
from torch.utils.data import DataLoader

from spanwise.batching import PackedBatch, TrainingBatches
from spanwise.errors import SpanwiseError
from spanwise.evaluation.scores import Score, Tally, entity_items
from spanwise.formats.files import replacing
from spanwise.inference.predictor import predict
from spanwise.model import Model
from spanwise.training.checkpoint import FOLDER as CHECKPOINTS
from spanwise.training.checkpoint import load_checkpoint, save_checkpoint
from spanwise.training.checks import why_nothing
from spanwise.training.optimization import SMALL, make_optimizer, make_schedule
from spanwise.training.progress import Progress
from spanwise.types import Corpus, Sentence

WATCH = 32  # steps whose losses are looked at together on a GPU, which need not wait for each


class Trainer:
    """Trains a model on ``corpus["train"]`` and keeps the weights that are best on ``corpus["dev"]`` in the run folder."""

    def __init__(
        self, model: Model, corpus: Corpus, folder: Path, *, device: str = "auto", trackers: Iterable[str] = (),
        say: Callable[[str], None] = print,
    ) -> None:  # fmt: skip
        self.model, self.corpus, self.folder, self.say = model, corpus, folder, say
        self.settings = model.config.training
        if device == "cuda" and not torch.cuda.is_available():
            raise SpanwiseError("--device cuda: no CUDA device can be used here; --device cpu or auto")
        on_cpu = device == "cpu" or not torch.cuda.is_available()
        self.precision = self._precision(on_cpu)
        if not on_cpu:
            torch.set_float32_matmul_precision("high")  # TF32: as good as float32 for this, and several times faster
        self.trackers = list(trackers)
        self.accelerator = Accelerator(
            cpu=on_cpu,
            mixed_precision="no" if self.precision == "fp32" else self.precision,
            log_with=self.trackers or None,
            project_dir=folder if self.trackers else None,
        )
        self.device = self.accelerator.device
        self.everything = [sentence for split in corpus.splits.values() for sentence in split]
        train = corpus["train"]
        share = (self.accelerator.process_index, self.accelerator.num_processes)
        self.batches = TrainingBatches(
            model.encoder, model.head, train, model.encoder.prepare(train, self.everything),
            epochs=self.settings.epochs, batch_size=self.settings.batch_size, budget=self.settings.token_budget,
            seed=self.settings.seed, share=share,
        )  # fmt: skip
        if not on_cpu and self.precision == "fp32" and self.settings.accumulate == 1 and share[1] == 1:
            model.encoder.record_steps()
        model.to(self.device)
        self.learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = make_optimizer(model, self.settings)
        self.schedule = make_schedule(self.optimizer, self._updates(len(self.batches)), self.settings.warmup)
        self.wrapped, self.stepper = self.accelerator.prepare(model, self.optimizer)
        self.epoch, self.best, self.best_epoch, self.seconds = 0, -1.0, 0, 0.0
        self.metrics: list[dict[str, Any]] = []
        self._recent: list[tuple[int, Tensor]] = []

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
            self.accelerator.init_trackers("spanwise", config=_flat(self.model.config.model_dump()))
        if not done and self.accelerator.is_main_process:
            self.model.save(self.folder)
        stream = self._stream(done)
        with Progress(len(self.batches), done, self.say) as progress:
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
            num_workers=2 if on_gpu else 0, prefetch_factor=8 if on_gpu else None, pin_memory=on_gpu,
        )  # fmt: skip
        return iter(loader)

    def _epoch(self, stream: Iterator[PackedBatch], done: int, progress: Progress) -> dict[str, Tensor]:
        self.wrapped.train()
        end = self.batches.ends[self.epoch]
        start = self.batches.ends[self.epoch - 1] if self.epoch else 0
        sums: dict[str, Tensor] = {}
        for step in range(done, end):
            losses = self._backward(next(stream))
            self._watch(step, losses["loss"])
            if (step + 1 - start) % self.settings.accumulate == 0 or step + 1 == end:
                self._update()
                if self.settings.checkpoint_steps and (step + 1) % self.settings.checkpoint_steps == 0 and step + 1 < end:
                    self._checkpoint(step + 1)
            for name, value in losses.items():
                sums[name] = sums[name] + value if name in sums else value
            progress.step(losses["loss"])
        self._look()
        return {name: value / max(1, end - done) for name, value in sums.items()}

    def _backward(self, packed: PackedBatch) -> dict[str, Tensor]:
        """Gradients of a batch. Only detached losses leave this function: nothing of the batch's graph may outlive it."""
        batch = packed.to(self.device)
        losses: dict[str, Tensor] = self.wrapped(batch.inputs, batch.targets)
        self.accelerator.backward(losses["loss"] / self.settings.accumulate)
        return {name: value.detach() for name, value in losses.items()}

    def _update(self) -> None:
        if self.precision == "fp16":  # gradients are scaled, and Accelerate knows by how much
            self.accelerator.clip_grad_norm_(self.learning, self.settings.clip)
        else:
            torch.nn.utils.clip_grad_norm_(self.learning, self.settings.clip, foreach=True)
        self.stepper.step()
        self.schedule.step()
        self.stepper.zero_grad(set_to_none=True)

    def _watch(self, step: int, loss: Tensor) -> None:
        self._recent.append((step, loss.detach()))
        if self.device.type != "cuda" or len(self._recent) >= WATCH:
            self._look()

    def _look(self) -> None:
        """Stop when a loss is not finite, and name the batch it came from."""
        if not self._recent:
            return
        finite = torch.isfinite(torch.stack([loss for _, loss in self._recent])).tolist()
        for (step, _), is_finite in zip(self._recent, finite, strict=True):
            if not is_finite:
                names = [self.corpus["train"][number].id for number in self.batches.batches[step]]
                shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
                raise SpanwiseError(
                    f"the loss of step {step + 1} (epoch {self.epoch + 1}) is not a number; its batch holds the sentences "
                    f"{shown}. Lower training.encoder_rate and training.head_rate, or set training.precision=fp32"
                )
        self._recent.clear()

    def _dev(self, losses: dict[str, Tensor], seconds: float, done: int, progress: Progress) -> None:
        began = time.perf_counter()
        predicted = list(predict(self.model, self.corpus["dev"], context=self.everything))
        score = micro(self.corpus["dev"], predicted)
        row = {
            "epoch": self.epoch, "step": done, **{name: round(float(value), 6) for name, value in losses.items()},
            "dev": {"precision": score.precision, "recall": score.recall, "f1": score.f1},
            "seconds": round(seconds, 3), "dev_seconds": round(time.perf_counter() - began, 3),
        }  # fmt: skip
        self.metrics.append(row)
        better = score.f1 > self.best
        progress.epoch(row, better)
        if self.epoch == 1 and score.f1 == 0:
            cause = why_nothing(self.corpus["dev"], predicted, self.model.head, self.settings.head_rate)
            self.say(f"dev F1 is 0 after the first epoch: {cause}")
        if self.trackers:
            self.accelerator.log(_flat({key: value for key, value in row.items() if key != "step"}), step=done)
        if better:
            self.best, self.best_epoch = score.f1, self.epoch
        if self.accelerator.is_main_process:
            if better:
                with replacing(self.folder / "model.safetensors") as temporary:
                    save_weights(self.model, temporary)
            with replacing(self.folder / "metrics.jsonl") as temporary:
                temporary.write_text("".join(json.dumps(row) + "\n" for row in self.metrics), encoding="utf-8")
        self._checkpoint(done)

    def _is_stale(self) -> bool:
        patience = self.settings.patience
        return patience is not None and self.epoch - self.best_epoch >= patience and self.best_epoch > 0

    def _checkpoint(self, step: int) -> None:
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            state = {"epoch": self.epoch, "best": self.best, "best_epoch": self.best_epoch, "metrics": self.metrics,
                     "seconds": self.seconds, "config": self.model.config.model_dump()}  # fmt: skip
            save_checkpoint(self.folder, step, self.model, self.optimizer, self.schedule, state)

    def _resume(self) -> int:
        state = load_checkpoint(self.folder, self.model, self.optimizer, self.schedule)
        if state is None:
            self.say("no checkpoint to resume from: starting at the beginning")
            return 0
        if state["config"] != json.loads(json.dumps(self.model.config.model_dump())):
            changed = sorted(_difference(state["config"], json.loads(json.dumps(self.model.config.model_dump()))))
            raise SpanwiseError(f"{self.folder}: cannot resume with other settings than it began with: {', '.join(changed)}")
        self.epoch, self.best, self.best_epoch = state["epoch"], state["best"], state["best_epoch"]
        self.metrics, self.seconds = state["metrics"], state["seconds"]
        self.say(f"resuming behind step {state['step']:,} (epoch {self.epoch + 1})")
        return int(state["step"])

    def finish(self, scores: dict[str, Any]) -> None:
        """Nothing is left to resume: the checkpoints go."""
        if self.trackers:
            final = {f"{split}_f1": values["micro"]["f1"] for split, values in scores.items()}
            self.accelerator.log(final)
            self.accelerator.end_training()
        if self.accelerator.is_main_process:
            shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)


def micro(gold: Iterable[Sentence], predicted: Iterable[Sentence]) -> Score:
    """Micro scores of sentences that stand in the same order."""
    tally = Tally()
    for one, other in zip(gold, predicted, strict=True):
        tally.add(entity_items(one), entity_items(other))
    return tally.scores.micro


def save_weights(model: Model, path: Path) -> None:
    from safetensors.torch import save_file

    from spanwise.model import weights

    save_file(weights(model), path)


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values under dotted names, as trackers want them."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        elif isinstance(value, int | float | str | bool):
            flat[prefix + key] = value
    return flat


def _difference(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    first, second = _flat(one), _flat(other)
    return {key for key in first.keys() | second.keys() if first.get(key) != second.get(key)}
