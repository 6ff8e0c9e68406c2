"""Checks of training, resuming and saving."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from spanwise.heads import head_class
from spanwise.models.model import Model
from spanwise.prediction.predictor import predict
from spanwise.recipes.catalog import configure
from spanwise.runtime.tensors import state_tensors
from spanwise.testing.corpus import tiny_corpus, with_relations
from spanwise.testing.encoders import STATIC
from spanwise.testing.sentences import TEST_SENTENCES
from spanwise.training.run import Run, train

CORPUS = with_relations(tiny_corpus(train=24, dev=4, test=4))
EPOCHS, BATCH_SIZE, CHECKPOINT_STEPS = 8, 8, 4
COPIED_STEP = 18  # of 24, after the checkpoint of step 16, which is inside an epoch


def train_tiny(recipe: str, folder: Path, *, encoder: str, overrides: Sequence[str], resume: bool = False) -> Run:
    """Overfit a recipe on the tiny corpus."""
    torch.set_num_threads(1)  # results must not depend on the machine
    small = STATIC if encoder == "static" else ()
    return train(
        CORPUS, folder, recipe=recipe, encoder=encoder, overrides=(*small, *overrides), resume=resume, device="cpu",
        epochs=EPOCHS, batch_size=BATCH_SIZE, checkpoint_steps=CHECKPOINT_STEPS, head_rate=0.02, encoder_rate=1e-3,
        warmup=0.0, schedule="constant", accumulate=1, clip=1.0, test=False, log=_discard,
    )  # fmt: skip


def train_and_copy(recipe: str, folder: Path, copy: Path, *, encoder: str, overrides: Sequence[str]) -> Run:
    """Overfit a recipe; ``copy`` becomes the run folder as a kill in ``COPIED_STEP`` would leave it."""
    head = head_class(configure(recipe, encoder=encoder, overrides=overrides).head["kind"])
    loss, calls = head.loss, 0

    def counted(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == COPIED_STEP:
            shutil.copytree(folder, copy)
        return loss(self, *arguments)

    with patch.object(head, "loss", counted):
        run = train_tiny(recipe, folder, encoder=encoder, overrides=overrides)
    assert copy.is_dir(), "Head.loss must be called once for each step of training"
    return run


def check_loss_decreases(run: Run) -> None:
    """The loss is finite in every epoch and lower in the last than in the first."""
    losses = [row["loss"] for row in _metrics(run.folder)]
    assert all(map(math.isfinite, losses)), f"the training loss is not finite: {losses}"
    assert losses[-1] < 0.8 * losses[0], f"the training loss does not decrease: {losses}"


def check_resume(run: Run, copy: Path, *, encoder: str, overrides: Sequence[str]) -> None:
    """A run that is resumed in the copied folder ends with the weights and metrics of ``run``."""
    resumed = train_tiny(run.model.config.recipe, copy, encoder=encoder, overrides=overrides, resume=True)
    _assert_same_weights(resumed.model, run.model, "the weights of a resumed run differ")
    assert _metrics(copy) == _metrics(run.folder), "the metrics of a resumed run differ"


def check_saved_model(run: Run) -> None:
    """The model of a run folder equals the model in memory."""
    loaded = Model.load(run.folder)
    assert loaded.config == run.model.config, "the configuration of the loaded model differs"
    assert loaded.labels == run.model.labels, "the labels of the loaded model differ"
    _assert_same_weights(loaded, run.model, "the weights of the loaded model differ")
    expected, actual = (list(predict(model, TEST_SENTENCES)) for model in (run.model, loaded))
    assert actual == expected, "the predictions of the loaded model differ"
    scores = [[[entity.score for entity in sentence.entities] for sentence in output] for output in (expected, actual)]
    assert scores[0] == scores[1], "the scores of the loaded model differ"


def _assert_same_weights(actual: Model, expected: Model, problem: str) -> None:
    tensors = state_tensors(expected)
    assert state_tensors(actual).keys() == tensors.keys(), problem
    different = [name for name, tensor in state_tensors(actual).items() if not torch.equal(tensor, tensors[name])]
    assert not different, f"{problem}: {', '.join(different)}"


def _metrics(folder: Path) -> list[dict[str, Any]]:
    """The metrics of each epoch without durations."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in row.items() if not key.endswith("seconds")} for row in rows]


def _discard(line: str) -> None:
    """Ignore a line of progress."""
