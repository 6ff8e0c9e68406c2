"""Shared code of the three peers that use Hugging Face's Trainer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from job import Job, ShouldContinue
from transformers import TrainerCallback, TrainerControl, TrainingArguments


class EpochEnd(TrainerCallback):
    """Waits for the next command after each epoch of the Trainer."""

    def __init__(self, should_continue: ShouldContinue) -> None:
        self.should_continue = should_continue

    def on_epoch_end(self, args: Any, state: Any, control: TrainerControl, **rest: Any) -> TrainerControl:
        control.should_training_stop = control.should_training_stop or not self.should_continue()
        return control


@contextmanager
def settings(job: Job, epochs: int, kind: type[TrainingArguments] = TrainingArguments, **options: Any) -> Iterator[Any]:
    """Yield arguments for a silent training on the CPU in a temporary folder, with the peer's options."""
    with TemporaryDirectory() as folder:
        yield kind(
            folder, num_train_epochs=epochs, per_device_eval_batch_size=job.predict_batch, seed=job.seed, use_cpu=True,
            save_strategy="no", logging_strategy="no", report_to="none", disable_tqdm=True, **options,
        )  # fmt: skip
