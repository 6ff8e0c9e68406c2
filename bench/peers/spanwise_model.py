"""Spanwise as a worker, with its trainer, predictor and default rates.

With the option ``int8`` the trained model is exported to 8-bit ONNX, which then predicts. The quantisation is
chosen on the file ``dev``, if given. The export is part of the training time of ``fit``, not of the timed epochs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from job import Example, Job, ShouldContinue

import spanwise
from spanwise.core.types import Corpus, Entity, Sentence
from spanwise.export.onnx import export_onnx
from spanwise.formats.jsonl import to_record
from spanwise.models.model import Model
from spanwise.prediction.base import BasePredictor
from spanwise.prediction.onnx.predictor import OnnxPredictor
from spanwise.prediction.predictor import predict
from spanwise.recipes.catalog import configure
from spanwise.training.loop import Trainer


class Peer:
    version = f"spanwise {spanwise.__version__}"

    def __init__(self, job: Job, train: list[Example]) -> None:
        self.job = job
        sentences = [
            Sentence(f"s{n}", tuple(one.words), tuple(Entity(type, ((start, end),)) for type, start, end in one.entities))
            for n, one in enumerate(train)
        ]
        # Nothing is chosen on dev here, but a trainer wants one.
        self.corpus = Corpus({"train": sentences, "dev": sentences[:1]})
        self.exported: BasePredictor | None = None

    def train(self, epochs: int, should_continue: ShouldContinue) -> None:
        self._train(epochs, should_continue)
        if self.job.options.get("int8"):
            with TemporaryDirectory() as folder:
                run, out = Path(folder) / "run", Path(folder) / "int8"
                self.model.save(run)
                export = export_onnx(run, out, int8=True, dev=self.job.options.get("dev"))
                print(export, file=sys.stderr)
                self.exported = OnnxPredictor(out, "cpu")

    def _train(self, epochs: int, should_continue: ShouldContinue) -> None:
        torch.manual_seed(self.job.seed)
        overrides = {"batch_size": self.job.batch_size, "encoder_rate": self.job.rate, "head_rate": self.job.rate}
        settings = {"epochs": epochs, "seed": self.job.seed, **{name: value for name, value in overrides.items() if value}}
        config = configure(self.job.options["recipe"], encoder=self.job.encoder, settings=settings)
        self.model = Model.build(config, self.corpus)  # the number of epochs is part of the configuration, so not before
        with TemporaryDirectory() as folder:
            trainer = Trainer(self.model, self.corpus, Path(folder), device="cpu", log=lambda line: None)
            stream, done = trainer._stream(0), 0
            for end in trainer.batches.ends:
                trainer.steps.wrapped_model.train()
                for step in range(done, end):
                    trainer.step(step, next(stream))
                done = end
                if not should_continue():
                    return

    def predict(self, sentences: list[list[str]]) -> list[list[dict[str, Any]]]:
        inputs = [Sentence(f"s{n}", tuple(words)) for n, words in enumerate(sentences)]
        if self.exported is not None:
            predicted = self.exported.predict(inputs, batch_size=self.job.predict_batch)
        else:
            predicted = predict(self.model.eval(), inputs, batch_size=self.job.predict_batch)
        return [to_record(sentence)["entities"] for sentence in predicted]
