"""SpanMarker on the common encoder, with its trainer.

It pads every sample to ``model_max_length`` and its 256 markers. Its guide has 256 subwords; here it is the
longest sentence of train and test, if that is shorter, so nothing more is cut, rounded up to an even number,
where its collator puts the first marker. Rate, batch size, decay and
warm-up are those of its guide: 5e-5, 32 samples, 0.01, a tenth of the steps.
"""

from __future__ import annotations

from typing import Any

import span_marker
import torch
import transformers
from datasets import Dataset
from hf_trainer import EpochEnd, settings
from job import Example, Job, ShouldContinue, read, tag_names, tags, to_records
from span_marker import SpanMarkerModel, Trainer
from transformers import AutoTokenizer

MAX_LENGTH = 256  # subwords of a sentence, in SpanMarker's guide


def needed_length(encoder: str, sentences: list[list[str]]) -> int:
    """Return the subwords of the longest sentence, with the special ones, as an even number of at most ``MAX_LENGTH``."""
    encoded = AutoTokenizer.from_pretrained(encoder)(sentences, is_split_into_words=True)
    longest = max(map(len, encoded["input_ids"]))
    return min(MAX_LENGTH, longest + longest % 2)


class Peer:
    version = f"span_marker {span_marker.__version__}, transformers {transformers.__version__}"

    def __init__(self, job: Job, train: list[Example]) -> None:
        transformers.set_seed(job.seed)
        self.job = job
        names = tag_names(job.types)
        length = needed_length(job.encoder, [example.words for example in [*train, *read(job.test)]])
        self.model = SpanMarkerModel.from_pretrained(
            job.encoder, labels=names, model_max_length=length, entity_max_length=job.width, torch_dtype=torch.float32
        )
        numbers = [[names.index(tag) for tag in tags(example)] for example in train]
        self.rows = Dataset.from_dict({"tokens": [example.words for example in train], "ner_tags": numbers})

    def train(self, epochs: int, should_continue: ShouldContinue) -> None:
        options = {"learning_rate": self.job.rate or 5e-5, "per_device_train_batch_size": self.job.batch_size or 32}
        with settings(self.job, epochs, weight_decay=0.01, warmup_ratio=0.1, **options) as arguments:
            Trainer(self.model, arguments, train_dataset=self.rows, callbacks=[EpochEnd(should_continue)]).train()

    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        every = self.model.predict(Dataset.from_dict({"tokens": sentences}), batch_size=self.job.predict_batch)
        return [
            to_records((one["label"], one["word_start_index"], one["word_end_index"]) for one in predicted)
            for predicted in every
        ]
