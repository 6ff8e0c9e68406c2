"""Flair's sequence tagger, fine-tuned as its documentation proposes: no RNN, no CRF, a linear layer on the common encoder.

Its own rate and batch are the defaults of its ``fine_tune``: 5e-5, which rises over a tenth of the steps, and 4 sentences.
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
from job import Example, GoesOn, Job, written

NAME = "ner"
flair.device = torch.device("cpu")


class EpochEnd(TrainerPlugin):
    """Where Flair's trainer waits for the next command."""

    def __init__(self, goes_on: GoesOn) -> None:
        super().__init__()
        self.goes_on = goes_on

    @TrainerPlugin.hook
    def after_training_epoch(self, **rest: Any) -> None:
        if not self.goes_on():
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

    def train(self, epochs: int, goes_on: GoesOn) -> None:
        with TemporaryDirectory() as folder:
            ModelTrainer(self.tagger, self.corpus).fine_tune(
                folder, learning_rate=self.job.rate or 5e-5, mini_batch_size=self.job.batch_size or 4, max_epochs=epochs,
                save_final_model=False, create_file_logs=False, create_loss_file=False, plugins=[EpochEnd(goes_on)],
            )  # fmt: skip

    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        asked = [Sentence(words) for words in sentences]
        self.tagger.predict(asked, mini_batch_size=self.job.predict_batch)
        return [
            written((span.get_label(NAME).value, span.tokens[0].idx - 1, span.tokens[-1].idx) for span in one.get_spans(NAME))
            for one in asked
        ]
