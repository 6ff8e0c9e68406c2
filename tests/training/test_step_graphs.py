"""Recorded training steps, compared with steps that launch every kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import corpus, quiet
from torch import Tensor

from spanwise.batching.batches import TrainingBatches
from spanwise.models.model import Model
from spanwise.recipes.catalog import configure
from spanwise.spans.deep import SpanTransformer
from spanwise.training.loop import Trainer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
RECIPES = {
    "global-pointer": (),
    "biaffine": ("head.hidden_dropout=0",),
    "spanwise": ("head.hidden_dropout=0", "head.relations=false", "encoder.parts.0.masking=0"),
    "spanner": (),
    "seqner-crf": (),
    "deep-span": ("head.max_width=5", "training.precision=fp32"),
    "deep-span-pruned": ("head.max_width=5", "training.precision=fp32"),
}


def train_weights(folder: Path, recipe: str, encoder: Path) -> tuple[dict[str, Tensor], Trainer]:
    torch.manual_seed(1)
    overrides = ("head.dropout=0", "training.batch_size=4", *RECIPES[recipe])
    data = corpus(80)
    model = Model.build(configure(recipe, encoder=str(encoder), settings={"epochs": 3}, overrides=overrides), data)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(module, SpanTransformer):
            module._layers = tuple(replace(layer, dropout=0.0, attention_dropout=0.0) for layer in module._layers)
    trainer = Trainer(model, data, folder, device="cuda", log=quiet)
    trainer.steps.wrapped_model.train()
    for step in range(len(trainer.batches)):
        trainer.step(step, trainer.batches[step])
    trainer.finite_check.check()
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}, trainer


@pytest.mark.parametrize("recipe", RECIPES)
def test_recorded_steps_learn_the_same_weights(
    recipe: str, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, trainer = train_weights(tmp_path / "a", recipe, tiny_bert)
    assert trainer.steps.graphs is not None
    assert trainer.steps.graphs.recorded
    monkeypatch.setattr(TrainingBatches, "fix_shapes", lambda self: False)
    plain, trainer = train_weights(tmp_path / "b", recipe, tiny_bert)
    assert trainer.steps.graphs is None
    for name, weight in recorded.items():
        torch.testing.assert_close(weight, plain[name], rtol=1e-3, atol=1e-4, msg=name)
