"""GLiNER's span model on the common encoder, with its trainer. It gets words instead of splitting texts.

Rate, batch size, decay and warm-up are the defaults of its ``create_training_args``: 5e-5 for all weights
(its example for training from scratch has 1e-5 and 3e-5, for 15,000 steps), 8 sentences, 0.01, a tenth of
the steps. Predictions may overlap only if entities of train do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import partial
from typing import Any

import gliner
import transformers
from gliner import GLiNER
from gliner.training import Trainer, TrainingArguments
from hf_trainer import EpochEnd, settings
from job import Example, Job, ShouldContinue, overlaps, starts, to_records


def at_spaces(text: str) -> Iterator[tuple[str, int, int]]:
    words = text.split(" ")
    return ((word, start, start + len(word)) for word, start in zip(words, starts(words), strict=True))


class Strict(Trainer):
    """Raises an error if a batch fails; GLiNER's trainer skips it silently, which would look fast."""

    use_apex = False  # GLiNER reads this attribute, which transformers 5 removed; without it every batch fails

    def training_step(self, *arguments: Any, **named: Any) -> Any:
        loss = super().training_step(*arguments, **named)
        if loss.requires_grad:  # the value for a failed batch; otherwise the loss is detached
            raise RuntimeError("GLiNER skipped a failed batch")
        return loss


class Peer:
    version = f"gliner {gliner.__version__}, transformers {transformers.__version__}"

    def __init__(self, job: Job, train: list[Example]) -> None:
        transformers.set_seed(job.seed)
        self.job, self.flat = job, not any(map(overlaps, train))
        self.model = GLiNER.from_config({"model_name": job.encoder, "max_width": job.width}).float()
        self.model.data_processor.words_splitter = at_spaces
        self.rows = [
            {"tokenized_text": one.words, "ner": [[start, end - 1, type] for type, start, end in one.entities]} for one in train
        ]

    def train(self, epochs: int, should_continue: ShouldContinue) -> None:
        rate = self.job.rate or 5e-5
        options = {
            "learning_rate": rate, "others_lr": rate, "weight_decay": 0.01, "others_weight_decay": 0.01, "warmup_steps": 0.1,
            "per_device_train_batch_size": self.job.batch_size or 8,
        }  # fmt: skip
        with settings(self.job, epochs, TrainingArguments, **options) as arguments:
            Strict(
                self.model, arguments, train_dataset=self.rows, data_collator=self.model._create_data_collator(),
                callbacks=[EpochEnd(should_continue)],
            ).train()  # fmt: skip

    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        texts = [" ".join(words) for words in sentences]
        every = self.model.inference(texts, self.job.types, flat_ner=self.flat, batch_size=self.job.predict_batch)
        result = []
        for words, predicted in zip(sentences, every, strict=True):
            word_after = partial(bisect_right, starts(words))  # maps a character to the index of the next word
            result.append(
                to_records((one["label"], word_after(one["start"]) - 1, word_after(one["end"] - 1)) for one in predicted)
            )
        return result
