"""Train a model in memory: without a run folder, checkpoints and dev scores."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import torch

from spanwise.config.settings import Config
from spanwise.core.types import Corpus
from spanwise.models.model import Model
from spanwise.training.deterministic import deterministic_algorithms
from spanwise.training.loop import Trainer


def fit(corpus: Corpus, config: Config, *, device: str = "auto") -> Model:
    """Train all epochs on ``corpus["train"]`` and return the model with the last weights.

    Much faster than ``train`` for many short trainings, such as those of a learning curve: dev is not
    scored and nothing is written. Settings that a head chooses on dev keep their defaults.
    """
    torch.manual_seed(config.training.seed)
    train, training = corpus["train"], config.training.model_copy(update={"checkpoint_steps": None})
    config = config.model_copy(update={"training": training})
    model = Model.build(config, corpus)
    with deterministic_algorithms(is_requested=training.deterministic):
        # The trainer needs a dev split and a folder; it uses neither here.
        trainer = Trainer(
            model, Corpus({"train": train, "dev": train[:1]}), Path(gettempdir()), device=device, log=lambda line: None
        )
        trainer.make_all_steps()
    return model.eval()
