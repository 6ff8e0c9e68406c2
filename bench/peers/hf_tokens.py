"""Hugging Face token classification like its run_ner example: Trainer, and BIO tags at first subwords.

Rate and batch size are those of the example, the defaults of ``TrainingArguments``: 5e-5 decaying to 0, 8 sentences.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from hf_trainer import EpochEnd, settings
from job import Example, Job, ShouldContinue, entities, tag_names, tags, to_records
from transformers import AutoModelForTokenClassification, AutoTokenizer, DataCollatorForTokenClassification, Trainer

IGNORED = -100


class Peer:
    version = f"transformers {transformers.__version__}"

    def __init__(self, job: Job, train: list[Example]) -> None:
        transformers.set_seed(job.seed)
        self.job = job
        self.names = tag_names(job.types)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.tokenizer = AutoTokenizer.from_pretrained(job.encoder)
        self.model = AutoModelForTokenClassification.from_pretrained(
            job.encoder, num_labels=len(self.names), dtype=torch.float32
        )
        self.rows = self._rows([example.words for example in train], [tags(example) for example in train])

    def _rows(self, sentences: list[list[str]], tagged: list[list[str]]) -> list[dict[str, Any]]:
        encoded = self.tokenizer(sentences, is_split_into_words=True, truncation=True)
        rows = []
        for number, names in enumerate(tagged):
            words = encoded.word_ids(number)
            firsts = [word is not None and word != before for before, word in zip([None, *words[:-1]], words, strict=True)]
            labels = [self.numbers[names[word]] if first else IGNORED for first, word in zip(firsts, words, strict=True)]
            rows.append({key: values[number] for key, values in encoded.items()} | {"labels": labels})
        return rows

    def _trainer(self, arguments: transformers.TrainingArguments, **rest: Any) -> Trainer:
        collator = DataCollatorForTokenClassification(self.tokenizer)
        return Trainer(self.model, arguments, data_collator=collator, processing_class=self.tokenizer, **rest)

    def train(self, epochs: int, should_continue: ShouldContinue) -> None:
        options = {"learning_rate": self.job.rate or 5e-5, "per_device_train_batch_size": self.job.batch_size or 8}
        with settings(self.job, epochs, **options) as arguments:
            self._trainer(arguments, train_dataset=self.rows, callbacks=[EpochEnd(should_continue)]).train()

    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        rows = self._rows(sentences, [["O"] * len(words) for words in sentences])
        with settings(self.job, 1) as arguments:
            output = self._trainer(arguments).predict(rows)
        best = output.predictions.argmax(-1)
        predictions = []
        for labels, numbers in zip(output.label_ids, best, strict=True):
            predictions.append(to_records(entities([self.names[number] for number in numbers[labels != IGNORED]])))
        return predictions
