"""Where Hugging Face's Trainer waits for the next command; three of the peers train with it."""

from __future__ import annotations

from typing import Any

from job import GoesOn
from transformers import TrainerCallback, TrainerControl


class EpochEnd(TrainerCallback):
    def __init__(self, goes_on: GoesOn) -> None:
        self.goes_on = goes_on

    def on_epoch_end(self, args: Any, state: Any, control: TrainerControl, **rest: Any) -> TrainerControl:
        control.should_training_stop = control.should_training_stop or not self.goes_on()
        return control
