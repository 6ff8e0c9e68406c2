"""Single training steps of tiny models: a trainer without dropout, and the gradients that the optimiser receives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from tiny import STATIC, corpus, quiet
from torch import Tensor

from spanwise import Corpus
from spanwise.batching.batches import Batch, PackedBatch
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.training.loop import Trainer


def make_trainer(folder: Path, recipe: str = "seqner", overrides: tuple[str, ...] = (), data: Corpus | None = None) -> Trainer:
    torch.manual_seed(0)
    no_dropout = ("encoder.dropout=0", "encoder.word_dropout=0", "head.dropout=0")
    config = configure(recipe, encoder="static", overrides=(*STATIC, *no_dropout, "training.batch_size=8", *overrides))
    data = data or corpus(60)
    return Trainer(Model.build(config, data), data, folder, device="cpu", log=quiet)


def pack(trainer: Trainer, indices: list[int]) -> PackedBatch:
    train = trainer.corpus["train"]
    encoder, head = trainer.model.encoder, trainer.model.head
    prepared = encoder.prepare([train[n] for n in indices])
    return PackedBatch.pack(
        Batch(np.array(indices), encoder.collate(prepared), head.targets([train[n] for n in indices], gold=True))
    )


def gradients(trainer: Trainer, parts: list[list[int]]) -> dict[str, Tensor]:
    """The gradients that the optimiser receives for a step over some batches."""
    received: dict[str, Tensor] = {}

    def record() -> None:
        received.update((name, p.grad.clone()) for name, p in trainer.model.named_parameters() if p.grad is not None)

    trainer.steps.wrapped_optimizer.step, trainer.steps.schedule.step = record, lambda: None
    trainer.steps.wrapped_model.train()
    for number, part in enumerate(parts, 1):
        trainer.step(number, pack(trainer, part), is_update=number == len(parts))
    return received
