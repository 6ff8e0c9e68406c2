"""EDS-NLP's trainable NER on the common encoder: ``eds.ner_crf`` with its ``train`` function.

The component has one tag sequence per type, so entities of different types may overlap. Rates are the defaults
of its trainer: 5e-5 for the encoder, 3e-4 for the rest, a warm-up over a tenth of the steps. The mode ``joint`` is
that of the example in its documentation, which recommends windows of 10 or 20 words for the CRF; here they have
20. A batch has 8 sentences, as for spaCy.
"""

from __future__ import annotations

from importlib.metadata import version
from tempfile import TemporaryDirectory
from typing import Any

import edsnlp
import edsnlp.pipes as eds
import transformers
from edsnlp.training.trainer import TrainingData, default_optim, train
from job import Example, Job, ShouldContinue, to_records
from spacy.tokens import Doc, Span

KEY = "entities"


class EnoughError(Exception):
    """Ends a training early."""


class Peer:
    version = f"edsnlp {version('edsnlp')}, transformers {transformers.__version__}"

    def __init__(self, job: Job, train: list[Example]) -> None:
        transformers.set_seed(job.seed)
        self.job, self.examples = job, train
        self.nlp = edsnlp.blank("eds")
        encoder = eds.transformer(model=job.encoder, window=128, stride=96)
        tagger = eds.ner_crf(
            embedding=encoder, mode="joint", window=20, target_span_getter=KEY, span_setter=KEY, labels=job.types
        )
        self.nlp.add_pipe(tagger, name="ner")
        self.documents = [self._document(example) for example in train]
        self.nlp.post_init(self.documents)

    def _document(self, example: Example) -> Doc:
        document = Doc(self.nlp.vocab, example.words)
        document.spans[KEY] = [Span(document, start, end, type) for type, start, end in example.entities]
        return document

    def train(self, epochs: int, should_continue: ShouldContinue) -> None:
        size = self.job.batch_size or 8
        steps = -(-len(self.documents) // size)
        rates = {"task_lr": self.job.rate, "transformer_lr": self.job.rate} if self.job.rate else {}
        optimizer = default_optim([self.nlp.get_pipe("ner")], max_steps=epochs * steps, **rates)
        data = TrainingData(data=edsnlp.data.from_iterable(self.documents), batch_size=f"{size} docs", shuffle="dataset")

        def after_epoch(metrics: Any) -> None:
            if not should_continue():
                raise EnoughError

        with TemporaryDirectory() as folder:
            try:
                train(
                    nlp=self.nlp, train_data=data, seed=self.job.seed, max_steps=epochs * steps, optimizer=optimizer,
                    validation_interval=steps, cpu=True, output_dir=folder, save_model=False, logger=False,
                    on_validation_callback=after_epoch,
                )  # fmt: skip
            except EnoughError:
                return

    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        self.nlp.train(False)
        documents = edsnlp.data.from_iterable([Doc(self.nlp.vocab, words) for words in sentences])
        predicted = documents.map_pipeline(self.nlp).set_processing(batch_size=f"{self.job.predict_batch} docs")
        return [to_records((span.label_, span.start, span.end) for span in document.spans[KEY]) for document in predicted]
