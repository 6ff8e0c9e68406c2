"""Flair's sequence tagger, fine-tuned as documented: no RNN, no CRF, a linear layer on the common encoder.

Rate and batch size are the defaults of its ``fine_tune``: 5e-5 with a warm-up over a tenth of the steps, 4 sentences.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import flair
import torch
import transformers
from flair.data import Corpus, Sentence
from flair.datasets import FlairDatapointDataset
from flair.embeddings import TransformerWordEmbeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer
from flair.trainers.plugins.base import TrainerPlugin, TrainingInterrupt
from job import Example, Job, ShouldContinue, to_records

NAME = "ner"
flair.device = torch.device("cpu")


class EpochEnd(TrainerPlugin):
    """Waits for the next command after each epoch of Flair's trainer."""

    def __init__(self, should_continue: ShouldContinue) -> None:
        super().__init__()
        self.should_continue = should_continue

    @TrainerPlugin.hook
    def after_training_epoch(self, **rest: Any) -> None:
        if not self.should_continue():
            raise TrainingInterrupt("enough")


def labelled(example: Example) -> Sentence:
    sentence = Sentence(example.words)
    for type, start, end in example.entities:
        sentence[start:end].add_label(NAME, type)
    return sentence


class Peer:
    version = f"flair {flair.__version__}, transformers {transformers.__version__}"

    def __init__(self, job: Job, train: list[Example]) -> None:
        flair.set_seed(job.seed)
        self.job = job
        self.corpus = Corpus(FlairDatapointDataset([labelled(example) for example in train]), sample_missing_splits=False)
        encoder = TransformerWordEmbeddings(job.encoder, layers="-1", subtoken_pooling="first", fine_tune=True)
        self.tagger = SequenceTagger(
            encoder, self.corpus.make_label_dictionary(NAME, add_unk=False), NAME, use_rnn=False, use_crf=False,
            reproject_embeddings=False,
        ).float()  # fmt: skip

    def train(self, epochs: int, should_continue: ShouldContinue) -> None:
        with TemporaryDirectory() as folder:
            ModelTrainer(self.tagger, self.corpus).fine_tune(
                folder, learning_rate=self.job.rate or 5e-5, mini_batch_size=self.job.batch_size or 4, max_epochs=epochs,
                save_final_model=False, create_file_logs=False, create_loss_file=False, plugins=[EpochEnd(should_continue)],
            )  # fmt: skip

    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        inputs = [Sentence(words) for words in sentences]
        self.tagger.predict(inputs, mini_batch_size=self.job.predict_batch)
        return [
            to_records(
                (span.get_label(NAME).value, span.tokens[0].idx - 1, span.tokens[-1].idx) for span in one.get_spans(NAME)
            )
            for one in inputs
        ]
