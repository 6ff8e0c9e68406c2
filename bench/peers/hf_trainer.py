"""What the three peers share that train with Hugging Face's Trainer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from job import GoesOn, Job
from transformers import TrainerCallback, TrainerControl, TrainingArguments


class EpochEnd(TrainerCallback):
    """Where the Trainer waits for the next command."""

    def __init__(self, goes_on: GoesOn) -> None:
        self.goes_on = goes_on

    def on_epoch_end(self, args: Any, state: Any, control: TrainerControl, **rest: Any) -> TrainerControl:
        control.should_training_stop = control.should_training_stop or not self.goes_on()
        return control


@contextmanager
def settings(job: Job, epochs: int, kind: type[TrainingArguments] = TrainingArguments, **own: Any) -> Iterator[Any]:
    """A silent training on the CPU that leaves nothing behind, with what is the peer's own."""
    with TemporaryDirectory() as folder:
        yield kind(
            folder, num_train_epochs=epochs, per_device_eval_batch_size=job.predict_batch, seed=job.seed, use_cpu=True,
            save_strategy="no", logging_strategy="no", report_to="none", disable_tqdm=True, **own,
        )  # fmt: skip
