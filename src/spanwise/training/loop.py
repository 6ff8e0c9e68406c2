"""The training loop: steps, epochs, dev scores, checkpoints, for any head."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object
from torch import Tensor
from torch.utils.data import DataLoader

from spanwise.batching.batches import PackedBatch, TrainingBatches
from spanwise.config.settings import encoder_name
from spanwise.core.counting import counted
from spanwise.core.types import Corpus, Sentence
from spanwise.corpora.splits import fingerprints
from spanwise.files.writing import atomic_output
from spanwise.heads.abilities import RepeatsExamples, find_ability
from spanwise.models.model import Model
from spanwise.runs.folder import RunFolder
from spanwise.runs.records import check_same
from spanwise.runtime.device import should_use_cuda
from spanwise.runtime.kernel_choice import plan_steps
from spanwise.runtime.tensors import state_tensors
from spanwise.runtime.threads import SlowStepCheck
from spanwise.training.acceleration import choose_precision, make_accelerator
from spanwise.training.checkpoint import checkpoint_tensors, load_checkpoint, random_states, read_state, save_checkpoint
from spanwise.training.checks import explain_zero_score
from spanwise.training.data import all_sentences
from spanwise.training.dev import DevScorer
from spanwise.training.finite_check import FiniteCheck
from spanwise.training.memory import explain_dead_processes, explain_lack_of_memory
from spanwise.training.progress import Progress
from spanwise.training.steps import TrainingSteps
from spanwise.training.trackers import flatten
from spanwise.training.writer import Writer

CHECK_INTERVAL = 512  # losses and gradient norms that are checked together on a GPU


class Trainer:
    """Training of a model on ``corpus["train"]``; the run folder gets the weights that are best on ``corpus["dev"]``.

    ``sentences`` replace those of train, for example by the same with the probabilities of teachers.
    ``data`` has the fingerprint of each split as it was read, if they are known or ``corpus`` differs from it.
    """

    def __init__(
        self, model: Model, corpus: Corpus, folder: Path, *, device: str = "auto", trackers: Iterable[str] = (),
        log: Callable[[str], None] = print, sentences: Sequence[Sentence] | None = None, data: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.model, self.corpus, self.folder, self.log = model, corpus, RunFolder(folder), log
        self.sentences = corpus["train"] if sentences is None else sentences
        self.fingerprints = fingerprints(corpus) if data is None else dict(data)
        self.settings, self.trackers = model.config.training, list(trackers)
        self._set_up_device(device)
        self._prepare_data()
        # On a CPU, the tensors to write are the weights themselves, which the next step changes.
        self.writer = Writer(in_background=self.device.type == "cuda")
        update_count = self._update_count()
        plan_steps(update_count)
        self.steps = TrainingSteps(model, self.batches, self.accelerator, self.precision, update_count)
        self._reset()

    def _set_up_device(self, device: str) -> None:
        on_cpu = not should_use_cuda(device)
        self.precision = choose_precision(self.settings.precision, self.model.encoder, on_cpu=on_cpu)
        requested = self.settings.precision
        if requested not in ("auto", self.precision):
            self.log(f"note: training.precision={requested} has no effect on a CPU, which trains in {self.precision}")
        self.accelerator: Accelerator = make_accelerator(on_cpu, self.precision, self.trackers, self.folder.path)
        self.device = self.accelerator.device

    def _prepare_data(self) -> None:
        model, settings, context = self.model, self.settings, all_sentences(self.corpus)
        # resolved when the model was built
        assert settings.batch_size is not None
        assert settings.epochs is not None
        self.epochs = settings.epochs
        train = [example for s in self.sentences if (example := model.head.training_example(s)) is not None]
        if (repeating := find_ability(model.head, RepeatsExamples)) is not None:
            once, train = len(train), repeating.repeat(train)
            if len(train) > once:
                self.log(f"note: sentences with rare examples are repeated: {len(train):,} instead of {once:,} per epoch")
        self.batches = TrainingBatches(
            model.encoder, model.head, train, model.encoder.prepare(train, context),
            epochs=self.epochs, batch_size=settings.batch_size, budget=settings.token_budget, seed=settings.seed,
            share=(self.accelerator.process_index, self.accelerator.num_processes),
        )  # fmt: skip
        self.dev = DevScorer(model, self.corpus["dev"], context)
        self.finite_check = FiniteCheck(self.batches, train, 1 if self.device.type == "cpu" else CHECK_INTERVAL)

    def _reset(self) -> None:
        """Set the state before the first step; ``_resume`` replaces it."""
        self.epoch, self.seconds = 0, 0.0
        self.best_score, self.best_epoch, self.last_improvement = -1.0, 0, 0
        self.metrics: list[dict[str, Any]] = []
        self.loss_sums: dict[str, Tensor] = {}  # over the batches of this epoch

    def _update_count(self) -> int:
        """The number of optimiser steps; the remaining batches of an epoch also make one."""
        epochs = zip(self.batches.starts, self.batches.ends, strict=True)
        return sum(math.ceil((end - start) / self.settings.accumulate) for start, end in epochs)

    @property
    def device_name(self) -> str:
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"

    @property
    def plan(self) -> str:
        """The training in one line: data, steps, size, device."""
        settings, labels = self.settings, self.model.labels
        parameters = sum(parameter.numel() for parameter in self.steps.trainable)
        relations = f" and {counted(len(labels.relations), 'relation type')}" if self.model.head.finds_relations else ""
        batches = f" in batches of {settings.batch_size}" if settings.token_budget is None else ""
        patience = f", patience {settings.patience}" if settings.patience else ""
        kept = ", keeping the last epoch" if settings.selection == "last" else ""
        return (
            f"training {self.model.config.recipe} with the encoder {encoder_name(self.model.config.encoder)} on "
            f"{self.corpus.name}{', ' * bool(self.corpus.name)}{counted(len(self.sentences), 'sentence')}, "
            f"{counted(len(labels.entities), 'type')}{relations}: {counted(self.epochs, 'epoch')}, "
            f"{counted(self._update_count(), 'step')}{batches}{patience}{kept}, "
            f"{parameters / 1e6:.1f} M weights, {self.device_name}, {self.precision}, seed {settings.seed}"
        )

    def train(self, checkpoint: Path | None = None) -> None:
        """Train all epochs, or those that remain after a checkpoint."""
        done = 0 if checkpoint is None else self._resume(checkpoint)
        is_main = self.accelerator.is_main_process
        if self.trackers:
            self.accelerator.init_trackers("spanwise", config=flatten(self.model.config.model_dump()))
        if not done and is_main:
            self.model.save_without_weights(self.folder.path)  # weights follow after the first epoch

        stream = self._stream(done)
        slow_steps = SlowStepCheck(torch.get_num_threads()) if self.device.type == "cpu" else None
        shown = Progress(len(self.batches), done, self.log, epochs=self.epochs, shows=is_main, slow_steps=slow_steps)
        with explain_dead_processes(), self.writer, shown as progress:
            while self.epoch < self.epochs and not self._is_out_of_patience():
                # one pass over the training data
                started = time.perf_counter()
                losses = self._train_epoch(stream, done, progress)
                done = self.batches.ends[self.epoch]
                self.epoch += 1
                seconds = time.perf_counter() - started
                self.seconds += seconds
                # dev scores, best weights, metrics and checkpoint
                self._evaluate(losses, seconds, done, progress)
        self.accelerator.wait_for_everyone()  # all processes read the best weights, which the first one has now written

    def make_all_steps(self) -> None:
        """Make the steps of all epochs without dev scores, checkpoints and other files."""
        stream = self._stream(0)
        with Progress(len(self.batches), 0, self.log, epochs=self.epochs, shows=False) as progress:
            for start in self.batches.starts:
                self._train_epoch(stream, start, progress)
                self.epoch += 1

    def _stream(self, done: int) -> Iterator[PackedBatch]:
        """The remaining batches; for a GPU, worker processes build them in advance."""
        on_gpu = self.device.type == "cuda"
        loader: DataLoader[PackedBatch] = DataLoader(
            self.batches, batch_size=None, sampler=range(done, len(self.batches)), generator=torch.Generator(),
            num_workers=2 if on_gpu else 0, prefetch_factor=8 if on_gpu else None,
        )  # fmt: skip
        return iter(loader)

    def _train_epoch(self, stream: Iterator[PackedBatch], done: int, progress: Progress) -> dict[str, float]:
        """Make the remaining steps of an epoch; return its mean losses."""
        self.steps.wrapped_model.train()
        start, end = self.batches.starts[self.epoch], self.batches.ends[self.epoch]
        for step in range(done, end):
            # forward, backward, update
            is_update = (step + 1 - start) % self.settings.accumulate == 0 or step + 1 == end
            losses = self.step(step, next(stream), is_update=is_update)
            for name, value in losses.items():
                self.loss_sums[name] = self.loss_sums[name] + value if name in self.loss_sums else value
            # checkpoints between epochs, counted in updates
            interval = self.settings.checkpoint_steps
            if interval and is_update and step + 1 < end and self.steps.schedule.last_epoch % interval == 0:
                self._save(step + 1)
            progress.step(losses["loss"])
        self.finite_check.check()
        means = {name: float(value) / (end - start) for name, value in self.loss_sums.items()}
        self.loss_sums = {}
        return means

    def step(self, number: int, packed: PackedBatch, *, is_update: bool = True) -> dict[str, Tensor]:
        """Learn from a batch and, with ``is_update``, make an optimiser step; return the losses."""
        batch = map(self.batches.sentences.__getitem__, packed.indices)  # read only if there is an error
        with explain_lack_of_memory(number + 1, batch, self.settings):
            losses, gradient_norm = self.steps.make(packed, is_update=is_update)
        self.finite_check.add(number, losses["loss"], gradient_norm)
        return losses

    def _evaluate(self, losses: dict[str, float], seconds: float, done: int, progress: Progress) -> None:
        """Score dev after an epoch; store the weights if they are the best, the metrics, and a checkpoint."""
        started, task = time.perf_counter(), self.model.task
        dev, predicted = self.dev.score()
        (dev,) = broadcast_object_list([dev])  # all processes continue with the same scores
        row = {
            "epoch": self.epoch, "step": done, **{name: round(value, 6) for name, value in losses.items()},
            "dev": dev,
            "seconds": round(seconds, 3), "dev_seconds": round(time.perf_counter() - started, 3),
        }  # fmt: skip
        self.metrics.append(row)
        score = task.selection_score(dev)
        is_best = self._record_score(score)

        # report
        progress.epoch(row, task.format_epoch(dev), score, is_best=is_best and self.settings.selection == "best")
        if self.epoch == 1 and score == 0:
            cause = explain_zero_score(self.dev.gold, predicted, self.model.head, self.settings.head_rate)
            self.log(f"dev {task.metric} is 0 after the first epoch: {cause}")
        if self.trackers:
            self.accelerator.log(flatten({key: value for key, value in row.items() if key != "step"}), step=done)

        self._save(done, is_epoch=True, is_best=is_best)

    def _record_score(self, score: float) -> bool:
        """Whether to keep the weights of this epoch: every epoch with ``selection: last``, else the latest with the best score.

        On a small dev split many epochs have the same score. The latest of them has learned the most and
        has the lowest rate. It does not count as an improvement for ``patience``.
        """
        if score > self.best_score:
            self.last_improvement = self.epoch
        elif score < self.best_score and self.settings.selection == "best":
            return False
        self.best_score, self.best_epoch = max(score, self.best_score), self.epoch
        return True

    def _is_out_of_patience(self) -> bool:
        patience = self.settings.patience
        return patience is not None and self.epoch - self.last_improvement >= patience

    def _save(self, step: int, *, is_epoch: bool = False, is_best: bool = False) -> None:
        """Save the metrics of an epoch, the weights if they are the best so far, and a checkpoint."""
        self.finite_check.check()  # never save weights that are not finite
        self.writer.wait()  # so that the memory holds one copy of the weights
        random = gather_object([random_states()])
        if self.accelerator.is_main_process:
            scaler = self.accelerator.scaler
            state: dict[str, Any] = {
                "step": step, "schedule": self.steps.schedule.last_epoch,
                "epoch": self.epoch, "seconds": self.seconds, "best_score": self.best_score, "best_epoch": self.best_epoch,
                "last_improvement": self.last_improvement, "metrics": list(self.metrics),
                "loss_sums": {name: float(value) for name, value in self.loss_sums.items()},
                "scaler": scaler.state_dict() if scaler else None,
                "config": self.model.config.model_dump(mode="json"), "data": self.fingerprints,
            }  # fmt: skip
            weights = state_tensors(self.model)
            files = checkpoint_tensors(weights, self.steps.optimizer, random)

            def write() -> None:
                if is_best:
                    self.model.save_weights(self.folder.path, weights)
                if is_epoch:
                    with atomic_output(self.folder.metrics_file) as temporary:
                        temporary.write_text("".join(json.dumps(row) + "\n" for row in state["metrics"]), encoding="utf-8")
                save_checkpoint(self.folder, state, files)

            self.writer.write(write)
        self.accelerator.wait_for_everyone()

    def _resume(self, checkpoint: Path) -> int:
        """Restore a checkpoint; return the number of steps done."""
        state = read_state(checkpoint)
        config = self.model.config.model_dump(mode="json")
        check_same(self.folder.path, state["config"], state["data"], config, self.fingerprints)
        load_checkpoint(checkpoint, self.model, self.steps.optimizer, self.steps.schedule, self.accelerator.process_index)
        if state["scaler"] and self.accelerator.scaler:
            self.accelerator.scaler.load_state_dict(state["scaler"])
        self.epoch, self.seconds, self.metrics = state["epoch"], state["seconds"], state["metrics"]
        self.best_score, self.best_epoch = state["best_score"], state["best_epoch"]
        self.last_improvement = state["last_improvement"]
        self.loss_sums = {name: torch.tensor(value, device=self.device) for name, value in state["loss_sums"].items()}
        self.log(f"resuming after step {state['step']:,} (epoch {self.epoch + 1})")
        return int(state["step"])

    def finish(self, scores: dict[str, Any]) -> None:
        """Log the final scores and remove checkpoints and training record, which only resuming needs."""
        if self.trackers:
            task = self.model.task
            self.accelerator.log({f"{split}_{task.metric_key}": task.metric_value(row) for split, row in scores.items()})
            self.accelerator.end_training()
        if self.accelerator.is_main_process:
            self.folder.remove_training_state()
