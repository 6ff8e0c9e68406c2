"""Hugging Face token classification as its own run_ner example does it: Trainer, and a BIO tag at each word's first subword."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from epoch_end import EpochEnd
from job import Example, GoesOn, Job, entities, tags, written
from transformers import AutoModelForTokenClassification, AutoTokenizer, DataCollatorForTokenClassification, Trainer

IGNORED = -100


class Peer:
    version = f"transformers {transformers.__version__}"

    def __init__(self, job: Job, train: list[Example]) -> None:
        transformers.set_seed(job.seed)
        self.job = job
        self.names = ["O", *(f"{kind}-{type}" for type in job.types for kind in "BI")]
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

    def _trainer(self, epochs: int, folder: str, **rest: Any) -> Trainer:
        settings = transformers.TrainingArguments(
            folder, num_train_epochs=epochs, per_device_train_batch_size=self.job.batch_size,
            per_device_eval_batch_size=self.job.predict_batch, learning_rate=self.job.rate, seed=self.job.seed, use_cpu=True,
            save_strategy="no", logging_strategy="no", report_to="none", disable_tqdm=True,
        )  # fmt: skip
        collator = DataCollatorForTokenClassification(self.tokenizer)
        return Trainer(self.model, settings, data_collator=collator, processing_class=self.tokenizer, **rest)

    def train(self, epochs: int, goes_on: GoesOn) -> None:
        with TemporaryDirectory() as folder:
            self._trainer(epochs, folder, train_dataset=self.rows, callbacks=[EpochEnd(goes_on)]).train()

    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        rows = self._rows(sentences, [["O"] * len(words) for words in sentences])
        with TemporaryDirectory() as folder:
            result = self._trainer(1, folder).predict(rows)
        best = result.predictions.argmax(-1)
        found = []
        for labels, numbers in zip(result.label_ids, best, strict=True):
            found.append(written(entities([self.names[number] for number in numbers[labels != IGNORED]])))
        return found
